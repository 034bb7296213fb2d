"""Layer normalisations that are written in parts, as exporters did before operator set 17, put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import (
    Weights,
    attribute,
    has_convolutions,
    neighbours,
    operator_types,
    rewrite_ends,
    told,
    uses,
)
from workers.networks.normalizations import LAYER
from workers.networks.shape import sizes_of
from workers.networks.shapes import tensor_shapes

_PARTS = {"ReduceMean", "Sub", "Add", "Sqrt", "Div"}


class _Found(NamedTuple):
    """What is normalised, over how many of its last axes, and what is added to its variance."""

    source: str
    axes: int
    epsilon: float


def layer_normalizations_put_together(model: ModelProto) -> str | None:
    """(x - mean) / sqrt(mean of its squares + epsilon), with what it is multiplied by and what is added behind it, is a
    LayerNormalization, which has a program that goes row by row; in parts it has two sums that share none."""
    if not operator_types(model) >= _PARTS:
        return None
    parts = _Parts(model)
    ends = {}
    for node in model.graph.node:
        if node.op_type == "Div" and (found := parts.normalised(node)) is not None:
            end, given = parts.affine(node, found)
            ends[end] = (found, given)

    def together(node: NodeProto) -> list[NodeProto]:
        if node.output[0] not in ends:
            return []
        found, given = ends[node.output[0]]
        return [helper.make_node(LAYER, [found.source, *given], node.output, axis=-found.axes, epsilon=found.epsilon)]

    return told(
        rewrite_ends(model.graph, together),
        "layer normalisation was put together of its parts",
        "layer normalisations were put together of their parts",
    )


class _Parts:
    def __init__(self, model: ModelProto) -> None:
        self._weights, self._shapes, self._read = Weights(model.graph), tensor_shapes(model), uses(model)
        self._makers, self._readers = neighbours(model.graph)
        self._convolves = has_convolutions(model)

    def normalised(self, division: NodeProto) -> _Found | None:
        """What a division ends the normalisation of."""
        source, mean = self._rest(division.input[0])
        root = self._made(division.input[1], "Sqrt")
        shifted = self._made(root.input[0], "Add") if root is not None else None
        if mean is None or shifted is None:
            return None
        for variance, epsilon in (shifted.input[:], shifted.input[::-1]):
            of_squares = self._made(variance, "ReduceMean")
            squared = self._squared(of_squares.input[0]) if of_squares is not None else ""
            if of_squares is None or epsilon not in self._weights or self._weights.get(epsilon).size != 1:
                continue
            axes = self._last_axes(mean, source)
            other, inner = self._rest(squared)
            alike = inner is not None and other == source and self._last_axes(inner, source) == axes
            if axes and alike and self._last_axes(of_squares, source) == axes:
                return _Found(source, axes, float(self._weights.get(epsilon).item()))
        return None

    def affine(self, division: NodeProto, found: _Found) -> tuple[str, Sequence[str]]:
        """The end of a normalisation, and by what it is multiplied and what is added to it."""
        sizes = sizes_of(self._shapes, found.source)[-found.axes :]
        name = division.output[0]
        product = self._only_reader(name, "Mul")
        scale = self._other(product, name, sizes)
        if product is None or not scale:
            return name, [self._weights.put(f"{name}__ones", np.ones(sizes, np.float32))]
        total = self._only_reader(product.output[0], "Add")
        shift = self._other(total, product.output[0], sizes)
        return (total.output[0], [scale, shift]) if total is not None and shift else (product.output[0], [scale])

    def _rest(self, name: str) -> tuple[str, NodeProto | None]:
        """Of what is left of x without its mean: x and the mean."""
        difference = self._made(name, "Sub")
        mean = self._made(difference.input[1], "ReduceMean") if difference is not None else None
        if difference is None or mean is None or mean.input[0] != difference.input[0]:
            return "", None
        return difference.input[0], mean

    def _squared(self, name: str) -> str:
        power, product = self._made(name, "Pow"), self._made(name, "Mul")
        if product is not None and product.input[0] == product.input[1]:
            return str(product.input[0])
        if power is not None and power.input[1] in self._weights and np.all(self._weights.get(power.input[1]) == 2):
            return str(power.input[0])
        return ""

    def _last_axes(self, mean: NodeProto, source: str) -> int:
        """How many of the last axes of x it is along; 0 where it is along others, or drops them."""
        shape = self._shapes.get(source)
        if shape is None or not shape.static or shape.dtype != TensorProto.FLOAT or not attribute(mean, "keepdims", 1):
            return 0
        given = attribute(mean, "axes", ())
        if len(mean.input) > 1 and mean.input[1] in self._weights:
            given = self._weights.get(mean.input[1]).reshape(-1).tolist()
        rank = len(shape.static)
        axes = sorted(axis % rank for axis in given)
        if self._convolves and rank > 3 and len(axes) > 1:  # of a picture, whose channels will be last
            return 0
        return len(axes) if axes == list(range(rank - len(axes), rank)) else 0

    def _made(self, name: str, kind: str) -> NodeProto | None:
        node = self._makers.get(name)
        return node if node is not None and node.op_type == kind else None

    def _only_reader(self, name: str, kind: str) -> NodeProto | None:
        """Nobody else, and no output of the network, has what is between."""
        reader = self._readers.get(name) if self._read[name] == 1 else None
        return reader if reader is not None and reader.op_type == kind else None

    def _other(self, node: NodeProto | None, name: str, sizes: tuple[int, ...]) -> str:
        """A constant of `sizes` that a sum or product has beside this operand."""
        if node is None:
            return ""
        other = node.input[1] if node.input[0] == name else node.input[0]
        return str(other) if other in self._weights and tuple(self._weights.shape(other)) == sizes else ""
