"""ArgMax and ArgMin of values of which none is larger, or smaller, than the least or the largest of their type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, operator_types, rewrite, told
from workers.networks.indices import CLIPS_BY_INPUTS
from workers.networks.inspect import opset
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes

KINDS = frozenset({"ArgMax", "ArgMin"})


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
