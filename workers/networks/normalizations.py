"""Normalisations as ONNX Runtime's optimiser writes them, in the one form that TVM's converter knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.errors import NetworkError
from workers.networks.graph import (
    Array,
    Parts,
    Weights,
    attribute,
    called,
    operator_types,
    rewrite,
    set_attributes,
    told,
    uses,
)
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset
from workers.networks.unmade import UNMADE

LAYER, SQUARES = "LayerNormalization", "RMSNormalization"
BY_LENGTH = "LpNormalization"
SKIPPING = "SkipLayerNormalization"
BY_VARIANCE = "MeanVarianceNormalization"
GAMMA, BETA, BIAS = 2, 3, 4
"""Places of inputs; the last two may be left out."""
SUM = 3
"""Place of the output that has what was added up; before it are a mean and a deviation for training."""
_AXES_BY_INPUT = 18
"""Operator set from which on ReduceL1, ReduceL2 and ReduceMean read their axes."""
_PICTURE = (0, 2, 3)
"""Axes of a MeanVarianceNormalization that names none."""
_LEAST_DEVIATION = 1e-9
"""What its definition adds to the deviation."""


def whole_skip_normalizations(model: ModelProto) -> str | None:
    """All have a beta and a bias, zeros where they had none, and what they add up, where it is read, is a sum of its own."""
    if SKIPPING not in operator_types(model):
        return None
    weights, read, shapes = Weights(model.graph), uses(model), tensor_shapes(model)

    def written_whole(node: NodeProto) -> list[NodeProto]:
        fits = node.op_type != SKIPPING or (len(node.output) == 1 and len(node.input) > BIAS and all(node.input))
        gamma = None if fits else shapes.get(node.input[GAMMA])
        if gamma is None or gamma.static is None:
            return []
        return _whole(node, np.zeros(gamma.static, helper.tensor_dtype_to_np_dtype(gamma.dtype)), weights, read)

    written = rewrite(model.graph, written_whole)
    return told(
        written,
        "normalisation was written with all its inputs",
        "normalisations were written with all their inputs",
    )


def _whole(node: NodeProto, zeros: Array, weights: Weights, read: Counter[str]) -> list[NodeProto]:
    given = [*node.input, "", ""][: BIAS + 1]
    result, *more = node.output
    for name in more[: SUM - 1]:
        if name and name in read:
            raise NetworkError(called(node), *UNMADE[LAYER])
    sums: list[NodeProto] = []
    if len(more) >= SUM and more[SUM - 1] and more[SUM - 1] in read:
        added = more[SUM - 1]
        part = f"{added}__unbiased" if given[BIAS] else added
        sums = [helper.make_node("Add", given[:GAMMA], [part])]
        if given[BIAS]:
            sums.append(helper.make_node("Add", [part, given[BIAS]], [added]))
    for place, word in ((BETA, "beta"), (BIAS, "bias")):
        if not given[place]:
            given[place] = weights.put(f"{result}__{word}", zeros)
    del node.input[:], node.output[1:]
    node.input.extend(given)
    return [node, *sums]


def long_layer_normalizations(model: ModelProto) -> str | None:
    """LayerNormalizations of float64 become the operators that define them: TVM's program is of float32 and float16 alone."""
    if LAYER not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    version = opset(model)

    def written_out(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == LAYER else None
        if shape is None or shape.dims is None or shape.dtype != TensorProto.DOUBLE:
            return []
        parts, rank = Parts(node.output[0], weights), len(shape.dims)
        rest, variance = _spread(parts, node.input[0], range(attribute(node, "axis", -1) % rank, rank), version)
        epsilon = parts.constant("epsilon", np.float64(attribute(node, "epsilon", 1e-5)))
        deviation = parts.add("Sqrt", "deviation", parts.add("Add", "least", variance, epsilon))
        _scale(parts, parts.add("Div", "normal", rest, deviation), [name for name in node.input[1:] if name])
        return parts.all()

    written = rewrite(model.graph, written_out)
    return told(
        written,
        "layer normalisation of float64 was written by others",
        "layer normalisations of float64 were written by others",
    )


def _spread(parts: Parts, source: str, axes: Sequence[int], version: int) -> tuple[str, str]:
    """What is left of a tensor without its mean, and its variance."""
    inputs, given = along(axes, parts, "axes", version)
    rest = parts.add("Sub", "rest", source, parts.add("ReduceMean", "mean", source, *inputs, **given))
    return rest, parts.add("ReduceMean", "variance", parts.add("Mul", "squares", rest, rest), *inputs, **given)


def along(axes: Sequence[int], parts: Parts, part: str, version: int) -> tuple[list[str], dict[str, Any]]:
    """The axes of a reduction as inputs and as attributes, of which an operator set has one."""
    return ([], {"axes": [*axes]}) if version < _AXES_BY_INPUT else ([parts.numbers(part, axes)], {})


def whole_layer_normalizations(model: ModelProto) -> str | None:
    """Scale and bias have a number for all that is normalised together: TVM takes its axes from their rank. What is spread out
    over those, or lies along other axes, is multiplied and added behind it."""
    if not operator_types(model) & {LAYER, SQUARES}:
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def split(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type in (LAYER, SQUARES) else None
        if shape is None or shape.static is None:
            return []
        given = [name for name in node.input[1:] if name]
        wanted = shape.static[attribute(node, "axis", -1) :]
        if all(name in shapes and shapes[name].static == wanted for name in given):
            return []
        parts = Parts(node.output[0], weights)
        one = np.ones(wanted, helper.tensor_dtype_to_np_dtype(shape.dtype))
        node.input[:], node.output[0] = [node.input[0], parts.constant("ones", one)], f"{parts.result}__normal"
        _scale(parts, node.output[0], given)
        return [node, *parts.all()]

    written = rewrite(model.graph, split)
    return told(written, "layer normalisation was scaled behind it", "layer normalisations were scaled behind them")


def _scale(parts: Parts, normal: str, given: Sequence[str]) -> None:
    """`normal` times the scale, and plus the bias where one is given too."""
    product = parts.add("Mul", "Mul", normal, given[0])
    for bias in given[1:]:
        parts.add("Add", "Add", product, bias)


def normalizations_behind_an_axis(model: ModelProto) -> str | None:
    """A RMSNormalization of all its axes gets one of 1 in front: TVM's program has no place for a sum that has none."""
    if SQUARES not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def moved(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == SQUARES else None
        if shape is None or not shape.dims or attribute(node, "axis", -1) % len(shape.dims):
            return []
        source, result = node.input[0], node.output[0]
        first = weights.put(f"{result}__first", np.asarray([0]))
        node.input[0], node.output[0] = f"{result}__framed", f"{result}__normal_framed"
        set_attributes(node, axis=1)
        return [
            helper.make_node("Unsqueeze", [source, first], [node.input[0]]),
            node,
            helper.make_node("Squeeze", [node.output[0], first], [result]),
        ]

    written = rewrite(model.graph, moved)
    return told(written, "normalisation of all axes got one in front", "normalisations of all axes got one in front")


def means_and_variances_written_out(model: ModelProto) -> str | None:
    """MeanVarianceNormalization becomes the operators that define it, over those of its axes that its tensor has: ones that it
    does not name are a picture's. TVM divides by no epsilon, by nothing where a channel is the same everywhere."""
    if BY_VARIANCE not in operator_types(model):
        return None
    weights, shapes, version = Weights(model.graph), tensor_shapes(model), opset(model)

    def written_out(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == BY_VARIANCE else None
        if shape is None or shape.dims is None:
            return []
        parts = Parts(node.output[0], weights)
        axes = [axis for axis in attribute(node, "axes") or _PICTURE if axis < len(shape.dims)]
        rest, variance = _spread(parts, node.input[0], axes, version)
        dtype = helper.tensor_dtype_to_np_dtype(shape.dtype or TensorProto.FLOAT)
        least = parts.constant("epsilon", np.asarray(_LEAST_DEVIATION, dtype))
        deviation = parts.add("Add", "above_nothing", parts.add("Sqrt", "deviation", variance), least)
        parts.add("Div", "normal", rest, deviation)
        return parts.all()

    written = rewrite(model.graph, written_out)
    return told(
        written, "normalisation was written by its definition", "normalisations were written by their definition"
    )


def lengths_to_quotients(model: ModelProto) -> str | None:
    """LpNormalization becomes the quotient by a length, which is 0 where that is."""
    if BY_LENGTH not in operator_types(model):
        return None
    weights, shapes, version = Weights(model.graph), tensor_shapes(model), opset(model)

    def quotient(node: NodeProto) -> list[NodeProto]:
        power = attribute(node, "p", 2)
        if node.op_type != BY_LENGTH or power not in (1, 2):
            return []
        (source,), parts = node.input, Parts(node.output[0], weights)
        shape = shapes.get(source)
        dtype = helper.tensor_dtype_to_np_dtype(shape.dtype if shape and shape.dtype else TensorProto.FLOAT)
        zero, unit = (parts.constant(part, np.asarray(n, dtype)) for n, part in enumerate(("zero", "unit")))
        axes, given = along([attribute(node, "axis", -1)], parts, "axes", version)
        length = parts.add(f"ReduceL{power}", "length", source, *axes, **given)
        whole = parts.add("Where", "whole", parts.add("Equal", "none", length, zero), unit, length)
        parts.add("Div", "quotient", source, whole)
        return parts.all()

    written = rewrite(model.graph, quotient)
    return told(written, "normalisation was written as a quotient", "normalisations were written as quotients")
