"""Constants with as many axes as what they are combined with."""

from __future__ import annotations

from onnx import ModelProto

from workers.networks.graph import Weights, has_convolutions, told
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD

COMBINING = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "PRelu"})
IMAGE = 4
"""Axes of what convolutions read."""


def constants_to_full_rank(model: ModelProto) -> str | None:
    """A constant [C, 1, 1] beside [N, C, H, W] becomes [1, C, 1, 1], in networks with convolutions.

    A convolution's layout does not pass through an operator whose operands have different numbers of axes: a DenseNet with
    scales of its own was transposed before each of them, and back behind it.
    """
    graph = model.graph
    if not has_convolutions(model):
        return None
    weights, shapes = Weights(graph), tensor_shapes(model)
    lifted: dict[str, str] = {}
    for node in graph.node:
        if node.op_type not in COMBINING or node.domain not in STANDARD:
            continue
        ranks = [len(shape.static) for name in node.input if (shape := shapes.get(name)) and shape.static is not None]
        if len(ranks) != len(node.input) or max(ranks) != IMAGE:
            continue
        for place, (name, rank) in enumerate(zip(node.input, ranks, strict=True)):
            if name in weights and 0 < rank < IMAGE:
                if name not in lifted:
                    values = weights.get(name)
                    lifted[name] = weights.put(f"{name}__full", values.reshape((1,) * (IMAGE - rank) + values.shape))
                node.input[place] = lifted[name]
    return told(
        len(lifted),
        "constant was given as many axes as what it is combined with",
        "constants were given as many axes as what they are combined with",
    )
