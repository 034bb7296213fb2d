"""Sequences of tensors as these themselves: PyTorch exports split, chunk and stack so, and no sizes are known behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.folding import fold_constants
from workers.networks.graph import Parts, Weights, attribute, operator_types, put, told
from workers.networks.inference import Inference
from workers.networks.limits import WRITTEN
from workers.networks.opsets import OLDEST
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import set_output_shapes, skeleton
from workers.networks.structure import opset

MOST = 1024
"""Parts of a sequence."""


def sequences_to_tensors(model: ModelProto) -> str | None:
    """A SplitToSequence whose parts have known sizes becomes a Split, what is taken of it at a constant place that part, and a
    ConcatFromSequence a Concat. Whoever else reads a sequence has it made of the parts: TVM cuts parts of one length evenly, 9
    by 4 into 3, 3 and 3."""
    if opset(model) < OLDEST or not operator_types(model) & {"SplitToSequence", "SequenceAt", "ConcatFromSequence"}:
        return None
    fold_constants(model)
    inference = Inference(skeleton(model), WRITTEN)
    tensors = _Tensors(Weights(model.graph), inference.shapes)
    inference.run(tensors.written)  # one after the other: sizes behind a sequence are known when it is written
    if put(model.graph, tensors.nodes):
        set_output_shapes(model)
    many = len(tensors.nodes)
    return told(many, "operator on sequences was written by tensors", "operators on sequences were written by tensors")


class _Tensors:
    """What is written in place of operators, by their results, and the tensors of each sequence."""

    def __init__(self, weights: Weights, shapes: Mapping[str, TensorShape]) -> None:
        self.nodes: dict[str, Sequence[NodeProto]] = {}
        self._weights, self._shapes = weights, shapes
        self._of: dict[str, list[str]] = {}
        self._rules = {
            "SequenceConstruct": self._construct,
            "SplitToSequence": self._split,
            "SequenceAt": self._at,
            "ConcatFromSequence": self._concatenate,
        }

    def written(self, node: NodeProto) -> Sequence[NodeProto]:
        """The next operator of the network, or others."""
        rule = self._rules.get(node.op_type)
        nodes = rule(node, Parts(node.output[0], self._weights)) if rule else []
        if nodes:
            self.nodes[node.output[0]] = nodes
        return nodes or [node]

    def _construct(self, node: NodeProto, parts: Parts) -> list[NodeProto]:
        self._of[node.output[0]] = list(node.input)
        return []

    def _split(self, node: NodeProto, parts: Parts) -> list[NodeProto]:
        """The sequence itself goes where nobody reads it any longer. The axis may go where no length is given."""
        lengths, axis = self._lengths(node), attribute(node, "axis", 0)
        if not lengths:
            return []
        names = [f"part_{place}" for place in range(len(lengths))]
        along = _numbers(parts, "lengths", lengths)
        tensors = parts.several("Split", names, node.input[0], along, axis=axis)
        if not any(node.input[1:]) and not attribute(node, "keepdims", 1):
            dropped = _numbers(parts, "axis", [axis])
            tensors = [
                parts.add("Squeeze", f"{name}_alone", one, dropped) for name, one in zip(names, tensors, strict=True)
            ]
        self._of[node.output[0]] = tensors
        parts.add("SequenceConstruct", "sequence", *tensors)
        return parts.all()

    def _lengths(self, node: NodeProto) -> list[int]:
        """Of the parts: those that are given, or all of one but the last; none where that is not known."""
        sizes, axis = sizes_of(self._shapes, node.input[0]), attribute(node, "axis", 0)
        given = [*node.input, ""][1]
        if not -len(sizes) <= axis < len(sizes) or (given and given not in self._weights):
            return []
        lengths = self._weights.get(given) if given else np.asarray(1)
        if lengths.ndim:
            return lengths.reshape(-1).tolist() if lengths.size <= MOST else []
        length, size = int(lengths), sizes[axis]
        if not 0 < length or size > MOST * length:
            return []
        return [min(length, size - begin) for begin in range(0, size, length)]

    def _at(self, node: NodeProto, parts: Parts) -> list[NodeProto]:
        tensors, place = self._of.get(node.input[0], []), node.input[1]
        found = self._weights.get(place).reshape(-1).tolist() if place in self._weights else []
        if len(found) != 1 or not -len(tensors) <= found[0] < len(tensors):
            return []
        parts.add("Identity", "taken", tensors[found[0]])
        return parts.all()

    def _concatenate(self, node: NodeProto, parts: Parts) -> list[NodeProto]:
        tensors, axis = self._of.get(node.input[0], []), attribute(node, "axis")
        if not tensors:
            return []
        if attribute(node, "new_axis", 0):
            added = _numbers(parts, "axis", [axis])
            tensors = [parts.add("Unsqueeze", f"framed_{place}", one, added) for place, one in enumerate(tensors)]
        parts.add("Concat", "joined", *tensors, axis=axis)
        return parts.all()


def _numbers(parts: Parts, part: str, values: Sequence[int]) -> str:
    """Made by an operator, as inference has read the network's constants already."""
    return parts.add("Constant", part, value_ints=values)
