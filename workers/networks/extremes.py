"""Extremes of values of which none is larger, or smaller, than the least or the largest of their type."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Weights, attribute, operator_types, rewrite, told
from workers.networks.indices import CLIPS_BY_INPUTS
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

KINDS = frozenset({"ArgMax", "ArgMin"})
ENDS = {"ReduceMax": -math.inf, "ReduceMin": math.inf}
"""What the extreme of nothing else is."""


def extremes_within(model: ModelProto) -> str | None:
    """What ArgMax and ArgMin find is within the axis: TVM looks for more than a type's least value, and of a row of nothing but
    that, as a mask of zeros in uint8, tells -1, or the axis' size where it looks from the end."""
    if not KINDS & operator_types(model):
        return None
    shapes, weights = tensor_shapes(model), Weights(model.graph)
    clips = opset(model) >= CLIPS_BY_INPUTS
    rewritten = rewrite(model.graph, lambda node: _within(node, shapes, weights, clips))
    return told(
        rewritten, "place of an extreme was kept within its axis", "places of extremes were kept within their axes"
    )


def _within(node: NodeProto, shapes: Mapping[str, TensorShape], weights: Weights, clips: bool) -> list[NodeProto]:
    data = shapes.get(node.input[0]) if node.op_type in KINDS else None
    if data is None or data.static is None:
        return []
    name, size = node.output[0], data.static[attribute(node, "axis", 0)]
    found, under = f"{name}__found", f"{name}__under"
    node.output[0] = found
    least, most = (
        weights.put(f"{name}__{word}", np.asarray(place)) for word, place in (("least", 0), ("most", size - 1))
    )
    if clips:  # which fuses
        return [node, helper.make_node("Clip", [found, least, most], [name])]
    return [node, helper.make_node("Min", [found, most], [under]), helper.make_node("Max", [under, least], [name])]


def infinite_extremes(model: ModelProto) -> str | None:
    """Whether the largest of a row is minus infinity, which an Attention asks of its mask, is asked of each number of the row:
    of nothing but infinities TVM's largest is the least finite number, and its smallest the largest."""
    kinds = operator_types(model)
    if "Equal" not in kinds or not ENDS.keys() & kinds:
        return None
    shapes, weights = tensor_shapes(model), Weights(model.graph)
    made = {node.output[0]: node for node in model.graph.node if node.op_type in ENDS}
    rewritten = rewrite(model.graph, lambda node: _asked_of_each(node, made, shapes, weights))
    return told(
        rewritten,
        "comparison of an extreme with infinity was made number by number",
        "comparisons of extremes with infinity were made number by number",
    )


def _asked_of_each(
    node: NodeProto, made: Mapping[str, NodeProto], shapes: Mapping[str, TensorShape], weights: Weights
) -> list[NodeProto]:
    extreme = next((made[name] for name in node.input if name in made), None)
    end = next((name for name in node.input if name in weights), None)
    if node.op_type != "Equal" or extreme is None or end is None:
        return []
    value = weights.get(end)
    found = shapes.get(extreme.output[0])
    rank = 1 if found is None or found.dims is None else len(found.dims)
    if value.size != 1 or value.item() != ENDS[extreme.op_type] or value.ndim > rank:
        return []  # a constant of more axes gives them to what comes out
    (name,) = node.output
    end = weights.put(f"{name}__end", value.reshape(()))
    same, counted, least = (f"{name}__{word}" for word in ("same", "counted", "least"))
    every = NodeProto(op_type="ReduceMin", input=[counted, *extreme.input[1:]], output=[least])
    every.attribute.extend(extreme.attribute)
    return [
        helper.make_node("Equal", [extreme.input[0], end], [same]),
        helper.make_node("Cast", [same], [counted], to=TensorProto.INT32),
        every,
        helper.make_node("Cast", [least], [name], to=TensorProto.BOOL),
    ]
