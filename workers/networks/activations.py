"""Activations written with what a convolution's layout passes through."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, has_convolutions, rewrite, told
from workers.networks.inspect import opset
from workers.networks.shapes import tensor_shapes


def hard_activations_to_clips(model: ModelProto) -> str | None:
    """HardSigmoid(x) becomes Clip(a x + b, 0, 1), and HardSwish(x) x times Clip(x + 3, 0, 6) / 6, in networks with
    convolutions, where such Clips become Relus.

    TVM imports both with a clip of its own, which nothing fuses with the convolution before: a MobileNetV3 had 28 operators
    for them, each with transpositions.
    """
    graph = model.graph
    if opset(model) < 11 or not has_convolutions(model):
        return None
    weights, shapes = Weights(graph), tensor_shapes(model)

    def clipped(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type in ("HardSigmoid", "HardSwish") else None
        if shape is None or shape.dtype != 1:
            return []
        return (_hard_sigmoid if node.op_type == "HardSigmoid" else _hard_swish)(node, weights)

    rewritten = rewrite(graph, clipped)
    return told(rewritten, "hard activation was written with Clip", "hard activations were written with Clip")


def _hard_sigmoid(node: NodeProto, weights: Weights) -> list[NodeProto]:
    (source,), (result,) = node.input, node.output
    slope, offset = attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5)
    return [
        helper.make_node("Mul", [source, _number(weights, result, "slope", slope)], [f"{result}__scaled"]),
        helper.make_node(
            "Add", [f"{result}__scaled", _number(weights, result, "offset", offset)], [f"{result}__raised"]
        ),
        _clip(f"{result}__raised", result, weights, result, 1.0),
    ]


def _hard_swish(node: NodeProto, weights: Weights) -> list[NodeProto]:
    (source,), (result,) = node.input, node.output
    return [
        helper.make_node("Add", [source, _number(weights, result, "three", 3.0)], [f"{result}__raised"]),
        _clip(f"{result}__raised", f"{result}__clipped", weights, result, 6.0),
        helper.make_node("Mul", [f"{result}__clipped", _number(weights, result, "sixth", 1 / 6)], [f"{result}__gate"]),
        helper.make_node("Mul", [source, f"{result}__gate"], [result]),
    ]


def _clip(source: str, result: str, weights: Weights, name: str, upper: float) -> NodeProto:
    bounds = [_number(weights, name, "least", 0.0), _number(weights, name, "most", upper)]
    return helper.make_node("Clip", [source, *bounds], [result])


def _number(weights: Weights, name: str, what: str, value: float) -> str:
    return weights.put(f"{name}__{what}", np.asarray(value, np.float32))
