"""Attention (Vaswani et al. 2017) over whole vectors of keys.

A picture's 196 patches and its class are 197 keys: a prime number of columns, which no tile divides, and rows that a Softmax
adds up number by number. Keys and values of zeros are added, which nothing asks for: they are weighed by nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import (
    Weights,
    attribute,
    neighbours,
    operator_types,
    put,
    rewired,
    told,
    uses,
)
from workers.networks.opsets import OLDEST
from workers.networks.padding import NARROW, WIDE, Wider
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

QUARTER = 4
"""Numbers of which rows may be: to 196 keys twelve more gain nothing."""
MORE = 1 / 8
"""How many keys may be added, as a share."""
BESIDE = {"Add": 0.0, "Mul": 0.0, "Sub": 0.0, "Div": 1.0}
"""What may stand between the product and the Softmax, with a constant; and with what that is padded. What is added may be
computed too, as a mask that says which of a text's words are there."""


@dataclass(frozen=True)
class _Attention:
    """softmax(`product` ...) `values`, with what is `between`, the last first, over so many keys."""

    product: NodeProto
    between: tuple[NodeProto, ...]
    softmax: NodeProto
    values: NodeProto
    keys: int

    @property
    def every(self) -> tuple[NodeProto, ...]:
        return (self.product, *self.between, self.softmax, self.values)


def keys_in_whole_vectors(model: ModelProto) -> str | None:
    """Of keys and values that are computed, in float32."""
    if opset(model) < OLDEST or "Softmax" not in operator_types(model):
        return None
    graph, readers, shapes, weights = model.graph, uses(model), tensor_shapes(model), Weights(model.graph)
    makers, reading = neighbours(graph)
    written: dict[str, list[NodeProto]] = {}
    wider, count = Wider(weights), 0
    for node in graph.node:
        found = _attention(node, makers, reading, readers, shapes, weights) if node.op_type == "Softmax" else None
        fresh = found is not None and written.keys().isdisjoint(one.output[0] for one in found.every)
        if found is not None and fresh and (extra := more(found.keys)):
            written.update(_written(found, extra, shapes, weights, wider))
            count += 1
    put(graph, written)
    return told(count, "attention was given whole vectors of keys", "attentions were given whole vectors of keys")


def more(keys: int) -> int:
    """How many are added: none where rows are of quarters of vectors, or would be of too many more."""
    return next((-keys % size for size in (WIDE, NARROW) if keys % QUARTER and -keys % size <= keys * MORE), 0)


def _attention(
    softmax: NodeProto,
    makers: Mapping[str, NodeProto],
    reading: Mapping[str, NodeProto],
    readers: Mapping[str, int],
    shapes: Mapping[str, TensorShape],
    weights: Weights,
) -> _Attention | None:
    scores = shapes.get(softmax.input[0])
    sizes = scores.static if scores is not None and scores.dtype == TensorProto.FLOAT else None
    values = reading.get(softmax.output[0])
    if not sizes or attribute(softmax, "axis", -1) not in (-1, len(sizes) - 1) or values is None:
        return None
    weighs = readers[softmax.output[0]] == 1 and values.input[0] == softmax.output[0]
    if not weighs or _of_right_side(values, -2, shapes, weights) != sizes[-1]:
        return None
    ways: list[tuple[str, tuple[NodeProto, ...]]] = [(softmax.input[0], ())]
    while ways:
        name, between = ways.pop()
        node = makers.get(name)
        if node is None or readers[name] != 1:
            continue
        if _of_right_side(node, -1, shapes, weights) == sizes[-1]:
            return _Attention(node, between, softmax, values, sizes[-1])
        ways += [(one, (*between, node)) for one in _scores(node, sizes, shapes, weights)]
    return None


def _scores(node: NodeProto, sizes: tuple[int, ...], shapes: Mapping[str, TensorShape], weights: Weights) -> list[str]:
    """What an operator reads that may be the scores: beside it is a number for each key, or one for all."""
    if node.op_type not in BESIDE or len(node.input) != 2:
        return []
    first, second = node.input
    both = [(second, first), (first, second)] if node.op_type in ("Add", "Mul") else [(first, second)]
    return [
        name
        for name, beside in both
        if name not in weights and (beside in weights or node.op_type == "Add") and _by_key(beside, sizes, shapes)
    ]


def _by_key(name: str, sizes: tuple[int, ...], shapes: Mapping[str, TensorShape]) -> bool:
    shape = shapes[name].static if name in shapes else None
    return shape is not None and len(shape) <= len(sizes) and (not shape or shape[-1] in (1, sizes[-1]))


def _of_right_side(node: NodeProto, axis: int, shapes: Mapping[str, TensorShape], weights: Weights) -> int | None:
    """The size of what a product has on its right, where that is computed; None of another operator."""
    multiplies = node.op_type == "MatMul" and node.input[1] not in weights
    sizes = sizes_of(shapes, node.input[1]) if multiplies else ()
    return sizes[axis] if len(sizes) > 1 else None


def _written(
    found: _Attention, extra: int, shapes: Mapping[str, TensorShape], weights: Weights, wider: Wider
) -> dict[str, list[NodeProto]]:
    """What is put in the place of its operators, by their results."""
    name = found.softmax.output[0]

    def padded(read: str, axis: int, part: str) -> NodeProto:
        """What has so many more along an axis, of zeros."""
        pads = np.zeros(2 * len(sizes_of(shapes, read)), np.int64)
        pads[axis] = extra
        return helper.make_node("Pad", [read, weights.put(f"{part}_pads", pads)], [part])

    def of_more(node: NodeProto, axis: int, part: str) -> list[NodeProto]:
        """A product whose right side has them."""
        pad = padded(node.input[1], axis, f"{name}__{part}")
        return [pad, rewired(node, [node.input[0], *pad.output], node.output[0])]

    def widened(node: NodeProto) -> list[NodeProto]:
        """With what has a number for each key: a constant, or what is added."""
        made, inputs = list[NodeProto](), [*node.input]
        for place, read in enumerate(inputs):
            if read in scores or sizes_of(shapes, read)[-1:] != (found.keys,):
                continue
            if read in weights:
                inputs[place] = wider(read, len(weights.shape(read)) - 1, extra, BESIDE[node.op_type])
            else:
                made.append(padded(read, -1, f"{node.output[0]}__beside"))
                inputs[place] = made[-1].output[0]
        return [*made, rewired(node, inputs, node.output[0])]

    scores = {one.output[0] for one in found.every}
    mask = np.zeros(found.keys + extra, np.float32)
    mask[found.keys :] = -np.inf
    masked = helper.make_node("Add", [found.softmax.input[0], weights.put(f"{name}__mask", mask)], [f"{name}__masked"])
    return {
        found.product.output[0]: of_more(found.product, -1, "keys"),
        **{node.output[0]: widened(node) for node in found.between},
        name: [masked, rewired(found.softmax, [f"{name}__masked"], name)],
        found.values.output[0]: of_more(found.values, -2, "values"),
    }
