"""Constants with as many axes as what they are combined with."""

from __future__ import annotations

from onnx import ModelProto

from workers.networks.graph import Weights, has_convolutions, told
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD

COMBINING = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "PRelu"})
SIGNAL, IMAGE, VOLUME = 3, 4, 5
"""Axes of what convolutions read."""


def constants_to_full_rank(model: ModelProto) -> str | None:
    """A constant [C, 1, 1] beside [N, C, H, W] becomes [1, C, 1, 1], in networks with convolutions; of signals and volumes one
    that has a single number along the last axis, for theirs may be tokens with a bias [C].

    A convolution's layout does not pass through an operator whose operands have different numbers of axes: a DenseNet with
    scales of its own was transposed before each of them, and back behind it.
    """
    graph = model.graph
    if not has_convolutions(model):
        return None
    weights, shapes = Weights(graph), tensor_shapes(model)
    lifted: dict[tuple[str, int], str] = {}
    for node in graph.node:
        if node.op_type not in COMBINING or node.domain not in STANDARD:
            continue
        ranks = [len(shape.static) for name in node.input if (shape := shapes.get(name)) and shape.static is not None]
        if len(ranks) != len(node.input) or (most := max(ranks)) not in (SIGNAL, IMAGE, VOLUME):
            continue
        for place, (name, rank) in enumerate(zip(node.input, ranks, strict=True)):
            if name in weights and 0 < rank < most and (most == IMAGE or weights.shape(name)[-1] == 1):
                if (name, most) not in lifted:
                    values = weights.get(name)
                    full = values.reshape((1,) * (most - rank) + values.shape)
                    lifted[name, most] = weights.put(f"{name}__full", full)
                node.input[place] = lifted[name, most]
    return told(
        len(lifted),
        "constant was given as many axes as what it is combined with",
        "constants were given as many axes as what they are combined with",
    )
