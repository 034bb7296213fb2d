"""Operators that ONNX Runtime has of its own, as its quantiser and its optimiser write them, by ONNX's.

Constants that are made here are float32: of a network of half precision they are made alike, from the operator set on that can,
and that is widened before anything is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.contributed_attention import ATTENTIONS, OTHERWISE, Masks
from workers.networks.early import EARLY
from workers.networks.errors import NetworkError
from workers.networks.graph import (
    Array,
    Parts,
    Weights,
    attribute,
    called,
    drop_unread_weights,
    operator_types,
    rewrite,
)
from workers.networks.normalizations import along
from workers.networks.opsets import store_constants
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import CONTRIBUTED, opset
from workers.networks.subgraphs import nested

SWAPPED = "...ij->...ji"
"""An Einsum: how many axes are before the last two is not known here."""
_STORED = {4: TensorProto.UINT4, 8: TensorProto.UINT8}
"""By their bits, what constants are that are dequantised."""
_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
}
"""Of activations behind a convolution, in the order that it has them in. A Clip has its bounds."""
_BEHIND_GEMM = _PARAMETERS.keys() | {"Elu", "Selu", "Softplus", "Softsign", "ThresholdedRelu"}

_SINCE = {
    "Attention": 9,
    "DynamicQuantizeMatMul": 11,
    "FusedConv": 11,
    "FusedMatMul": 12,
    "MatMulIntegerToFloat": 10,
    "MultiHeadAttention": 9,
}
"""Operator sets from which on ONNX has what is written, bounds of a Clip as inputs among it."""
_BROADCASTING = 7
"""The one from which on sums and products need no attribute for it."""

_ALIKE = 15
"""The one that has a CastLike."""

Rule = Callable[[NodeProto, Parts, Weights, int], Sequence[NodeProto]]
"""What is written in place of an operator, in a network of this operator set; nothing where the rule does not know its form."""


def write_out_contributed(model: ModelProto) -> None:
    """Those that have a rule. Others stay, and the import names them. Raises NetworkError for an attention in another form, of
    which TVM's converter knows some, and computes fewer."""
    version, kinds = opset(model), operator_types(model)
    if not kinds & (_RULES.keys() | ATTENTIONS.keys()):
        return
    for graph in nested(model.graph):
        store_constants(graph)
    weights = Weights(model.graph)
    shapes = tensor_shapes(model) if kinds & ATTENTIONS.keys() else {}

    def written(node: NodeProto, masks: Masks) -> Sequence[NodeProto]:
        kind, own = node.op_type, node.domain == CONTRIBUTED or node.op_type in EARLY
        if not own or version < _SINCE.get(kind, _BROADCASTING):
            return []
        parts = Parts(node.output[0], weights)
        made: Sequence[NodeProto] = []
        with suppress(AttributeError, LookupError, TypeError, ValueError):  # of what nobody has checked
            if kind in ATTENTIONS:
                made = ATTENTIONS[kind](node, parts, weights, version, masks)
            elif kind in _RULES:
                made = _RULES[kind](node, parts, weights, version)
        if kind in ATTENTIONS and not made:
            raise NetworkError(called(node), *OTHERWISE)
        return made

    # Those inside of an operator first: replacing it takes them along.
    inside_first = reversed([*nested(model.graph)])
    if sum([rewrite(graph, partial(written, masks=Masks(shapes))) for graph in inside_first]):
        drop_unread_weights(model.graph)


def _product_of_few_bits(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """MatMulNBits: weights of 4 or 8 bits, column by column, with a scale and a zero for each block of one."""
    source, stored, scales, zeros, order, bias = [*node.input, *[""] * 6][:6]
    bits, block = attribute(node, "bits", 4), attribute(node, "block_size", 0)
    columns, length = attribute(node, "N", 0), attribute(node, "K", 0)
    constant = stored in weights and scales in weights and (not zeros or zeros in weights)
    if bits not in _STORED or not constant or order or attribute(node, "weight_prepacked", 0) or min(block, length) < 1:
        return []
    blocks = -(-length // block)
    integers = _unpacked(weights.get(stored), bits, columns, blocks * block)
    steps = weights.get(scales)
    if integers is None or steps.size != columns * blocks:
        return []
    steps = steps.reshape(columns, blocks)
    halfway = np.full(steps.shape, 1 << (bits - 1))
    middles = _unpacked(weights.get(zeros), bits, columns, blocks) if zeros else halfway
    if middles is None:
        return []
    kind = helper.tensor_dtype_to_np_dtype(_STORED[bits])
    given = {"stored": integers[:, :length].astype(kind), "scales": steps, "zeros": middles.astype(kind)}
    names = [parts.constant(part, values) for part, values in given.items()]
    # ONNX's own has blocks from operator set 21 on.
    how = {"axis": 1, "block_size": block, "accuracy_level": attribute(node, "accuracy_level", 0)}
    real = parts.add("DequantizeLinear", "columns", *names, domain=CONTRIBUTED, **how)
    product = parts.add("MatMul", "product", source, parts.add("Transpose", "weights", real, perm=[1, 0]))
    if bias:
        parts.add("Add", "biased", product, bias)
    return parts.all()


def _unpacked(packed: Array, bits: int, rows: int, count: int) -> Array | None:
    """Numbers [rows, count] of 4 or 8 bits; None where there are others. Each row begins with a byte, and of the two in one the
    lower comes first."""
    if packed.dtype != np.uint8 or packed.size != rows * -(-count * bits // 8):
        return None
    packed = packed.reshape(rows, -1)
    if bits == 8:
        return packed
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(rows, -1)[:, :count]


def _product_of_turned(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """FusedMatMul: alpha times the product of two, of either of which the last axes may be swapped."""
    if attribute(node, "transBatchA", 0) or attribute(node, "transBatchB", 0):
        return []
    sides = list(node.input)
    for place, side in enumerate("AB"):
        if attribute(node, f"trans{side}", 0):
            sides[place] = parts.add("Einsum", f"swapped_{side}", sides[place], equation=SWAPPED)
    product = parts.add("MatMul", "product", *sides)
    if (factor := np.float32(attribute(node, "alpha", 1.0))) != 1:
        parts.add("Mul", "scaled", product, _number(parts, "alpha", factor, product, version))
    return parts.all()


def _product_of_integers(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """MatMulIntegerToFloat: a sum of whole numbers, times both scales, and a bias where one is given."""
    left, right, left_scale, right_scale, *rest = node.input
    left_zero, right_zero, bias = [*rest, "", "", ""][:3]
    return _scaled_sums(parts, (left, right, left_zero, right_zero), (left_scale, right_scale), bias)


def _product_of_rounded(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """DynamicQuantizeMatMul: the same where the first factor is real, and is quantised when the network runs."""
    source, right, right_scale, right_zero, bias = [*node.input, "", ""][:5]
    stored, scale, zero = parts.several("DynamicQuantizeLinear", ("stored", "scale", "zero"), source)
    return _scaled_sums(parts, (stored, right, zero, right_zero), (scale, right_scale), bias)


def _scaled_sums(parts: Parts, factors: Sequence[str], scales: Sequence[str], bias: str) -> list[NodeProto]:
    sums = parts.add("Cast", "real", parts.add("MatMulInteger", "sums", *factors), to=TensorProto.FLOAT)
    product = parts.add("Mul", "product", sums, parts.add("Mul", "steps", *scales))
    if bias:
        parts.add("Add", "biased", product, bias)
    return parts.all()


def _activated_convolution(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """FusedConv: with what is added to it, and the activation behind that."""
    source, kernel, bias, added = [*node.input, *[""] * 4][:4]
    kind, numbers = attribute(node, "activation", b"").decode(), attribute(node, "activation_params", [])
    names = ("least", "most") if kind == "Clip" else _PARAMETERS.get(kind) if kind else ()
    if names is None or len(names) != len(numbers):
        return []
    result = parts.add("Conv", "sums", source, kernel, *filter(None, [bias]), **_but_activation(node))
    if added:
        result = parts.add("Add", "added", result, added)
    if kind == "Clip":
        bounds = [_number(parts, name, one, result, version) for name, one in zip(names, numbers, strict=True)]
        parts.add("Clip", "clipped", result, *bounds)
    elif kind:
        parts.add(kind, "activated", result, **dict(zip(names, numbers, strict=True)))
    return parts.all()


def _number(parts: Parts, name: str, value: Any, beside: str, version: int) -> str:
    """A constant of the type of what it is computed with."""
    constant = parts.constant(name, np.float32(value))
    return parts.add("CastLike", f"{name}_alike", constant, beside) if version >= _ALIKE else constant


def _activated_gemm(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """FusedGemm, whose activation has its attributes under longer names."""
    kind = attribute(node, "activation", b"").decode()
    if kind not in _BEHIND_GEMM:
        return []
    sums = parts.add("Gemm", "sums", *node.input, **_but_activation(node))
    prefix = "activation_"
    numbers = {one.name.removeprefix(prefix): one.f for one in node.attribute if one.name.startswith(prefix)}
    parts.add(kind, "activated", sums, **numbers)
    return parts.all()


def _but_activation(node: NodeProto) -> dict[str, Any]:
    return {
        one.name: helper.get_attribute_value(one) for one in node.attribute if not one.name.startswith("activation")
    }


def _quick_gelu(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """x times the sigmoid of alpha x."""
    (source,), factor = node.input, np.float32(attribute(node, "alpha", 1.702))
    scaled = (
        source if factor == 1 else parts.add("Mul", "scaled", source, _number(parts, "alpha", factor, source, version))
    )
    parts.add("Mul", "gated", source, parts.add("Sigmoid", "gate", scaled))
    return parts.all()


def _by_squares(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """SimplifiedLayerNormalization, which is ONNX's RMSNormalization of operator set 23, along the last axis."""
    source, scale = node.input[:2]
    of_last = scale in weights and len(weights.shape(scale)) == 1  # whatever the axis is called
    if not of_last or any(node.output[1:]):
        return []
    return _normal(source, scale, attribute(node, "epsilon", 1e-5), parts, weights, version)


def _skipping_by_squares(node: NodeProto, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """The same of a sum of two tensors, and a bias where one is given; the sum may be read too."""
    source, skipped, scale, bias = [*node.input, ""][:4]
    total = parts.add("Add", "sum", source, skipped)
    total = parts.add("Add", "whole_sum", total, bias) if bias else total
    if any(node.output[1:3]):
        return []
    nodes = _normal(total, scale, attribute(node, "epsilon", 1e-12), parts, weights, version)
    return [*nodes, *(helper.make_node("Identity", [total], [name]) for name in node.output[3:] if name and nodes)]


def _normal(source: str, scale: str, least: float, parts: Parts, weights: Weights, version: int) -> Sequence[NodeProto]:
    """`source` over the root of the mean of its squares and the `least` that it is, times a constant `scale`."""
    if scale not in weights:
        return []
    axes, given = along([-1], parts, "axes", version)
    squares = parts.add("Mul", "squares", source, source)
    mean = parts.add("ReduceMean", "mean", squares, *axes, **given)
    length = parts.add(
        "Sqrt", "length", parts.add("Add", "least", mean, _number(parts, "epsilon", least, mean, version))
    )
    parts.add("Mul", "scaled", parts.add("Div", "normal", source, length), scale)
    return parts.all()


_RULES: dict[str, Rule] = {
    "MatMulNBits": _product_of_few_bits,
    "FusedMatMul": _product_of_turned,
    "MatMulIntegerToFloat": _product_of_integers,
    "DynamicQuantizeMatMul": _product_of_rounded,
    "FusedConv": _activated_convolution,
    "FusedGemm": _activated_gemm,
    "QuickGelu": _quick_gelu,
    "SimplifiedLayerNormalization": _by_squares,
    "SkipSimplifiedLayerNormalization": _skipping_by_squares,
}
