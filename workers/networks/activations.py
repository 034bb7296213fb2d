"""Activations written with what a convolution's layout passes through."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import (
    Parts,
    Weights,
    attribute,
    has_convolutions,
    makers_of,
    operator_types,
    rewrite,
    rewrite_ends,
    told,
)
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

TERMS = 7
"""Of a series: z is a third at most, and what is left out begins with 2 z^15 / 15."""


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
        parts = Parts(node.output[0], weights)
        (_hard_sigmoid if node.op_type == "HardSigmoid" else _hard_swish)(node, parts)
        return parts.all()

    rewritten = rewrite(graph, clipped)
    return told(rewritten, "hard activation was written with Clip", "hard activations were written with Clip")


def prelus_to_leaky_relus(model: ModelProto) -> str | None:
    """Those of one slope, through which the padding of channels passes."""
    if opset(model) < 9 or "PRelu" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def leaky(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == "PRelu" and node.input[1] in weights else None
        if shape is None or shape.dtype != 1:
            return []
        sizes = weights.shape(node.input[1])
        if math.prod(sizes) != 1 or len(sizes) > len(shape.dims or ()):
            return []
        slope = float(weights.get(node.input[1]).item())
        return [helper.make_node("LeakyRelu", [node.input[0]], node.output, alpha=slope)]

    rewritten = rewrite(model.graph, leaky)
    return told(rewritten, "PRelu of one slope became a LeakyRelu", "PRelus of one slope became LeakyRelus")


def leaky_relus_by_channel(model: ModelProto) -> str | None:
    """LeakyRelu becomes PRelu of a slope for each channel in networks with convolutions: TVM knows no layout of the first, and
    computes a tensor of slopes from one, so that neither was part of a convolution's program."""
    if opset(model) < 9 or not has_convolutions(model) or "LeakyRelu" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def sloped(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == "LeakyRelu" else None
        if shape is None or shape.dtype != 1 or len(shape.static or ()) < 3:
            return []
        _, channels, *area = shape.static or ()
        by_channel = np.full([channels, *[1] * len(area)], attribute(node, "alpha", 0.01), np.float32)
        slopes = weights.put(f"{node.output[0]}__slopes", by_channel)
        return [helper.make_node("PRelu", [node.input[0], slopes], node.output)]

    rewritten = rewrite(model.graph, sloped)
    return told(
        rewritten, "leaky Relu was given a slope for each channel", "leaky Relus were given slopes for each channel"
    )


def mishes_by_one_exponential(model: ModelProto) -> str | None:
    """x tanh(log(1 + e^x)), an operator or three, is x n / (n + 2) with n = e^x (e^x + 2): TVM calls the C library's logarithm
    for each number. Beyond 20 the quotient is 1; a Relu takes care of that, through which layouts pass."""
    if not {"Mish", "Softplus"} & operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    makers = makers_of(model.graph)

    def written(node: NodeProto) -> list[NodeProto]:
        source = _source_of_mish(node, makers)
        if source not in shapes or shapes[source].dtype != TensorProto.FLOAT:
            return []
        parts = Parts(node.output[0], weights)
        far, two = parts.constant("far", np.float32(20)), parts.constant("two", np.float32(2))
        near = parts.add("Sub", "near", far, parts.add("Relu", "left", parts.add("Sub", "below", far, source)))
        power = parts.add("Exp", "power", near)
        product = parts.add("Mul", "product", power, parts.add("Add", "raised", power, two))
        parts.add("Mul", "mish", source, parts.add("Div", "gate", product, parts.add("Add", "whole", product, two)))
        return parts.all()

    rewritten = rewrite_ends(model.graph, written)
    return told(rewritten, "Mish was written with one exponential", "Mishes were written with one exponential each")


def softpluses_by_one_exponential(model: ModelProto) -> str | None:
    """log(1 + e^x) is the larger of x and 0, and with t = e^-|x| twice the area tangent of z = t / (t + 2), of whose series
    TERMS are exact to 2e-8 (Abramowitz & Stegun 4.1.27): TVM calls the C library's logarithm for each number."""
    if "Softplus" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def written(node: NodeProto) -> list[NodeProto]:
        source = node.input[0] if node.op_type == "Softplus" else ""
        if source not in shapes or shapes[source].dtype != TensorProto.FLOAT:
            return []
        parts = Parts(node.output[0], weights)
        factors = [parts.constant("factor", np.float32(2 / (2 * place + 1))) for place in range(TERMS)]
        two = factors[0]
        power = parts.add("Exp", "power", parts.add("Neg", "below", parts.add("Abs", "size", source)))
        tangent = parts.add("Div", "tangent", power, parts.add("Add", "whole", power, two))
        square, total = parts.add("Mul", "square", tangent, tangent), factors[-1]
        for place in reversed(range(TERMS - 1)):
            total = parts.add("Add", f"sum_{place}", parts.add("Mul", f"term_{place}", total, square), factors[place])
        area = parts.add("Mul", "area", tangent, total)
        parts.add("Add", "softplus", parts.add("Relu", "above", source), area)
        return parts.all()

    rewritten = rewrite(model.graph, written)
    return told(
        rewritten, "Softplus was written with one exponential", "Softpluses were written with one exponential each"
    )


def _source_of_mish(node: NodeProto, makers: Mapping[str, NodeProto]) -> str:
    """What a node is the Mish of; "" of none."""
    if node.op_type == "Mish":
        return str(node.input[0])
    if node.op_type != "Mul":
        return ""
    for source, gate in ((node.input[0], node.input[1]), (node.input[1], node.input[0])):
        outer = makers.get(gate)
        inner = makers.get(outer.input[0]) if outer is not None and outer.op_type == "Tanh" else None
        if inner is not None and inner.op_type == "Softplus" and inner.input[0] == source:
            return str(source)
    return ""


def _hard_sigmoid(node: NodeProto, parts: Parts) -> None:
    slope = _number(parts, "slope", attribute(node, "alpha", 0.2))
    offset = _number(parts, "offset", attribute(node, "beta", 0.5))
    _clip(parts, parts.add("Add", "raised", parts.add("Mul", "scaled", node.input[0], slope), offset), 1.0)


def _hard_swish(node: NodeProto, parts: Parts) -> None:
    (source,) = node.input
    clipped = _clip(parts, parts.add("Add", "raised", source, _number(parts, "three", 3.0)), 6.0)
    parts.add("Mul", "product", source, parts.add("Mul", "gate", clipped, _number(parts, "sixth", 1 / 6)))


def _clip(parts: Parts, source: str, upper: float) -> str:
    return parts.add("Clip", "clipped", source, _number(parts, "least", 0.0), _number(parts, "most", upper))


def _number(parts: Parts, part: str, value: float) -> str:
    return parts.constant(part, np.float32(value))
