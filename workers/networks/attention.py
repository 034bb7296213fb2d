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
    computed,
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
"""What may stand between the product and the Softmax, with a constant; and with what that is padded."""


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
    between, name = list[NodeProto](), softmax.input[0]
    while readers[name] == 1 and (node := makers.get(name)) and _passes(node, sizes, weights):
        between.append(node)
        (name,) = computed(node, weights)
    product = makers.get(name)
    once = readers[name] == readers[softmax.output[0]] == 1
    if not once or product is None or values.input[0] != softmax.output[0]:
        return None
    keys = _of_right_side(product, -1, shapes, weights), _of_right_side(values, -2, shapes, weights)
    return _Attention(product, tuple(between), softmax, values, sizes[-1]) if keys == (sizes[-1], sizes[-1]) else None


def _passes(node: NodeProto, sizes: tuple[int, ...], weights: Weights) -> bool:
    """Whether an operator reads the scores and a constant of a number for each key, or of one for all."""
    if node.op_type not in BESIDE or len(node.input) != 2 or len(computed(node, weights)) != 1:
        return False
    first = node.input[0] in weights
    other = node.input[0 if first else 1]
    if other not in weights or (first and node.op_type not in ("Add", "Mul")):
        return False
    shape = weights.shape(other)
    return len(shape) <= len(sizes) and (not shape or shape[-1] in (1, sizes[-1]))


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

    def padded(node: NodeProto, axis: int, what: str) -> list[NodeProto]:
        """A product whose right side has so many more along an axis."""
        pads = np.zeros(2 * len(sizes_of(shapes, node.input[1])), np.int64)
        pads[axis] = extra
        sizes = weights.put(f"{name}__{what}_pads", pads)
        pad = helper.make_node("Pad", [node.input[1], sizes], [f"{name}__{what}"])
        return [pad, rewired(node, [node.input[0], f"{name}__{what}"], node.output[0])]

    mask = np.zeros(found.keys + extra, np.float32)
    mask[found.keys :] = -np.inf
    masked = helper.make_node("Add", [found.softmax.input[0], weights.put(f"{name}__mask", mask)], [f"{name}__masked"])
    return {
        found.product.output[0]: padded(found.product, -1, "keys"),
        **{node.output[0]: [_widened(node, found.keys, extra, weights, wider)] for node in found.between},
        name: [masked, rewired(found.softmax, [f"{name}__masked"], name)],
        found.values.output[0]: padded(found.values, -2, "values"),
    }


def _widened(node: NodeProto, keys: int, extra: int, weights: Weights, wider: Wider) -> NodeProto:
    """With a constant that has a number for each key."""
    inputs = [*node.input]
    for place, name in enumerate(inputs):
        if name in weights and weights.shape(name)[-1:] == (keys,):
            axis = len(weights.shape(name)) - 1
            inputs[place] = wider(name, axis, extra, BESIDE[node.op_type])
    return rewired(node, inputs, node.output[0])
