"""Axes that are added and dropped, named as TVM reads them."""

from __future__ import annotations

from onnx import ModelProto

from workers.networks.graph import Weights, operator_types, told
from workers.networks.shapes import tensor_shapes


def unsqueezed_axes_in_lists(model: ModelProto) -> str | None:
    """One axis that is a number becomes a list of it: PyTorch's exporter writes it so where heads share keys. ONNX Runtime
    takes that, and TVM does not."""
    weights, listed = Weights(model.graph), 0
    for node in model.graph.node:
        name = node.input[1] if node.op_type == "Unsqueeze" and len(node.input) > 1 else ""
        if name in weights and not weights.shape(name):
            node.input[1] = weights.put(f"{node.output[0]}__axes", weights.get(name).reshape(1))
            listed += 1
    return told(listed, "Unsqueeze was given its axis in a list", "Unsqueezes were given their axes in lists")


def squeezed_axes_from_the_front(model: ModelProto) -> str | None:
    """Squeezes name their axes from the front: where one is counted from behind TVM's conversion of layouts runs out of memory,
    and the convolutions of a network would stay in a layout that takes four times as long."""
    if "Squeeze" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    counted = 0
    for node in model.graph.node:
        shape = shapes.get(node.input[0]) if node.op_type == "Squeeze" else None
        name = node.input[1] if len(node.input) > 1 else ""
        if shape is None or shape.dims is None or name not in weights or not (weights.get(name) < 0).any():
            continue
        node.input[1] = weights.put(f"{node.output[0]}__axes", weights.get(name) % len(shape.dims))
        counted += 1
    return told(counted, "Squeeze names its axes from the front", "Squeezes name their axes from the front")
