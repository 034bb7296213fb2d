"""Sequences of tensors of which a file says how many there are, and how large: what is taken of one is a tensor by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Parts, Weights, attribute, operator_types, rewrite_ends, told
from workers.networks.opsets import OLDEST
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import set_output_shapes, tensor_shapes
from workers.networks.structure import opset

MOST = 1024
"""Parts of one tensor."""


def sequences_to_parts(model: ModelProto) -> str | None:
    """SplitToSequence becomes a Split, and SequenceAt of a constant place the part that is there: nobody knows the size of what
    comes out of a sequence, and TVM cuts parts of one length evenly, 9 by 4 into 3, 3 and 3."""
    if "SequenceAt" not in operator_types(model) or opset(model) < OLDEST:
        return None
    count = 0
    while found := _taken(model):  # of what was taken of one sequence, now that its size is known, there may be another
        count += found
    if count:
        set_output_shapes(model)
    return told(count, "operator on sequences was written by parts", "operators on sequences were written by parts")


def _taken(model: ModelProto) -> int:
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    sequences: dict[str, list[str]] = {}

    def written(node: NodeProto) -> list[NodeProto]:
        if node.op_type == "SequenceConstruct":
            sequences[node.output[0]] = list(node.input)
        elif node.op_type == "SplitToSequence" and (lengths := _lengths(node, weights, shapes)):
            nodes = _split(node, lengths, weights)
            sequences[node.output[0]] = list(nodes[-1].input)
            return nodes
        elif node.op_type == "SequenceAt" and node.input[0] in sequences and node.input[1] in weights:
            members, place = sequences[node.input[0]], int(weights.get(node.input[1]).item())
            if -len(members) <= place < len(members):
                return [helper.make_node("Identity", [members[place]], node.output)]
        return []

    return rewrite_ends(model.graph, written)


def _lengths(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> list[int]:
    """Of the parts; none where they are not known."""
    sizes, given = sizes_of(shapes, node.input[0]), [*node.input, ""][1]
    if not sizes or (given and given not in weights):
        return []
    size, lengths = sizes[attribute(node, "axis", 0)], weights.get(given) if given else np.asarray(1)
    if lengths.ndim:
        return lengths.tolist() if len(lengths) <= MOST else []
    length = int(lengths)
    if length < 1 or size > length * MOST:
        return []
    return [min(length, size - begin) for begin in range(0, size, length)]


def _split(node: NodeProto, lengths: list[int], weights: Weights) -> list[NodeProto]:
    """Last a SequenceConstruct, for whoever else reads the sequence. The axis may go where no length is given."""
    axis, parts = attribute(node, "axis", 0), Parts(node.output[0], weights)
    names = [f"{node.output[0]}__part_{place}" for place in range(len(lengths))]
    nodes = [helper.make_node("Split", [node.input[0], parts.numbers("lengths", lengths)], names, axis=axis)]
    if len(node.input) < 2 and not attribute(node, "keepdims", 1):
        along = parts.numbers("axis", [axis])
        nodes += [helper.make_node("Squeeze", [name, along], [f"{name}_alone"]) for name in names]
        names = [f"{name}_alone" for name in names]
    return [*nodes, helper.make_node("SequenceConstruct", names, node.output)]
