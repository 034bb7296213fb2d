"""ScatterElements of fewer elements than there are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Array, Weights, attribute, operator_types, rewrite, told
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

BY_PLACES = 11
"""The operator set from which on ScatterND is there."""


def scattered_by_places(model: ModelProto) -> str | None:
    """ScatterElements whose indices are fewer than the data along another axis than its own becomes ScatterND, which names the
    whole place of each: TVM's program counts the indices' places as if they had the data's sizes."""
    if opset(model) < BY_PLACES or "ScatterElements" not in operator_types(model):
        return None
    shapes, weights = tensor_shapes(model), Weights(model.graph)
    rewritten = rewrite(model.graph, lambda node: _by_places(node, shapes, weights))
    return told(
        rewritten,
        "ScatterElements of a part was written as ScatterND",
        "ScatterElements of parts were written as ScatterND",
    )


def is_of_a_part(node: NodeProto, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether a ScatterElements has fewer indices than data along another axis, as far as sizes are known."""
    if node.op_type != "ScatterElements":
        return False
    data, at = (sizes_of(shapes, name) for name in node.input[:2])
    if not data or not at:
        return False
    axis = attribute(node, "axis", 0) % len(data)
    return any(few != many for place, (few, many) in enumerate(zip(at, data, strict=True)) if place != axis)


def _by_places(node: NodeProto, shapes: Mapping[str, TensorShape], weights: Weights) -> list[NodeProto]:
    if not is_of_a_part(node, shapes):
        return []
    data, at = (sizes_of(shapes, name) for name in node.input[:2])
    axis, name = attribute(node, "axis", 0) % len(data), node.output[0]
    grid = np.moveaxis(np.indices(at, np.int64), 0, -1)
    column = f"{name}__column"
    places = f"{name}__places"
    beside = [weights.put(f"{name}__{side}", part) for side, part in _beside(grid, axis)]
    parts = [*beside[: axis > 0], column, *beside[axis > 0 :]]
    kept = {one.name: helper.get_attribute_value(one) for one in node.attribute if one.name == "reduction"}
    return [
        helper.make_node("Cast", [node.input[1]], [f"{name}__long"], to=TensorProto.INT64),
        helper.make_node(
            "Reshape", [f"{name}__long", weights.put(f"{name}__size", np.asarray((*at, 1), np.int64))], [column]
        ),
        helper.make_node("Concat", parts, [places], axis=-1),
        helper.make_node("ScatterND", [node.input[0], places, node.input[2]], [name], name=node.name, **kept),
    ]


def _beside(grid: Array, axis: int) -> list[tuple[str, Array]]:
    """Where the indices themselves are: the places along the axes before and behind the one that is told."""
    parts = (("before", grid[..., :axis]), ("behind", grid[..., axis + 1 :]))
    return [(side, np.ascontiguousarray(part)) for side, part in parts if part.shape[-1]]
