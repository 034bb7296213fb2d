"""Operators on stored integers (QLinearConv, ConvInteger and their like) written as the real operator between its pairs.

What stands afterwards is one form for all quantised networks, DequantizeLinear and QuantizeLinear around operators on
real numbers, which `quantization` then takes to arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Weights, attribute, rewrite, told
from workers.networks.opsets import OLDEST, over_all_behind
from workers.networks.precision import INTEGER_OPERATORS
from workers.networks.shapes import tensor_shapes

_ONE = {
    "QLinearGlobalAveragePool": "GlobalAveragePool",
    "QLinearAveragePool": "AveragePool",
    "QLinearSigmoid": "Sigmoid",
    "QLinearLeakyRelu": "LeakyRelu",
    "QLinearSoftmax": "Softmax",
}
"""Inputs x, scale, zero; then scale and zero of the result."""
_TWO = {"QLinearMatMul": "MatMul", "QLinearAdd": "Add", "QLinearMul": "Mul"}
"""The same with two inputs."""
_WITH_BIAS = {"QLinearConv": "Conv", "QGemm": "Gemm"}
_INTEGER = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}
_SCALED = {
    "ConvInteger": ((2,), ()),
    "MatMulInteger": ((2,), (3,)),
    "QLinearMatMul": ((1, 2, 6, 7), (4, 5)),
}
"""Scales and zeros that may be but one number, by their places; and those that may be one for each column."""
SUMS = "__sums"
"""Ends the name of a real tensor that holds integers only."""
REAL = "__real"
"""Ends the name of one before it is stored."""
_LEFT_OUT = frozenset({"channels_last", "opset"})


def operators_to_pairs(model: ModelProto) -> str | None:
    """Each such operator whose weights' scales are constant; others stay and are refused by the import."""
    weights = Weights(model.graph)
    older = {node.output[0] + REAL for node in model.graph.node if _older_softmax(node)}
    written = rewrite(
        model.graph, lambda node: _Written(node, weights).nodes if node.op_type in INTEGER_OPERATORS else []
    )
    if older:
        _look_behind_axes(model, older)
    return told(
        written,
        "operator on quantised integers was written as a real one",
        "operators on quantised integers were written as real ones",
    )


def _older_softmax(node: NodeProto) -> bool:
    return node.op_type == "QLinearSoftmax" and int(attribute(node, "opset", OLDEST)) < OLDEST


def _look_behind_axes(model: ModelProto, older: Set[str]) -> None:
    """Softmaxes of `older` results look at all axes from their own on, where that is not the last."""
    shapes = tensor_shapes(model)

    def flat(node: NodeProto) -> list[NodeProto]:
        if node.output[0] not in older:
            return []
        found = shapes.get(node.input[0])
        last = -1 if found is None or found.dims is None else len(found.dims) - 1
        return [] if attribute(node, "axis", -1) in (-1, last) else over_all_behind(node)

    rewrite(model.graph, flat)


class _Written:
    """One operator's replacement; `nodes` is empty where it cannot be replaced."""

    def __init__(self, node: NodeProto, weights: Weights) -> None:
        self.nodes: list[NodeProto] = []
        self._node = node
        self._weights = weights
        self._kept = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name not in _LEFT_OUT}
        if attribute(node, "channels_last", 0) or (attribute(node, "alpha", 1.0) != 1.0 and node.op_type == "QGemm"):
            return
        inputs = [*node.input, *[""] * 9]
        if self._by_row(inputs):
            return
        if node.op_type == "QLinearConcat":
            triples = [node.input[place : place + 3] for place in range(2, len(node.input), 3)]
            self._result("Concat", [self._real(triple) for triple in triples], inputs[0:2])
        elif node.op_type in _ONE:
            self._result(_ONE[node.op_type], [self._real(inputs[0:3])], inputs[3:5])
        elif node.op_type in _TWO:
            axis = -1 if node.op_type == "QLinearMatMul" else None
            self._result(_TWO[node.op_type], [self._real(inputs[0:3]), self._real(inputs[3:6], axis)], inputs[6:8])
        elif node.op_type in _INTEGER:
            self._integer(inputs)
        else:
            self._with_bias(inputs)

    def _by_row(self, inputs: Sequence[str]) -> bool:
        """Whether a product has a scale or a zero for each row of its first factor or its result, or for each column of several
        matrices apart: no pair has."""
        places = _SCALED.get(self._node.op_type, ((), ()))
        shapes = [
            [self._weights.shape(inputs[place]) for place in some if inputs[place] in self._weights] for some in places
        ]
        return any(math.prod(shape) > 1 for shape in shapes[0]) or any(math.prod(shape[:-1]) > 1 for shape in shapes[1])

    def _with_bias(self, inputs: Sequence[str]) -> None:
        """A convolution or product whose int32 bias has the scale of both factors."""
        convolution = self._node.op_type == "QLinearConv"
        bias, result = (inputs[8], inputs[6:8]) if convolution else (inputs[6], inputs[7:9])
        scales = [self._weights.get(name) for name in (inputs[1], inputs[4]) if name in self._weights]
        if len(scales) < 2:
            return
        axis = 0 if convolution or attribute(self._node, "transB", 0) else 1
        terms = [self._real(inputs[0:3]), self._real(inputs[3:6], axis)]
        if bias:
            scale = self._weights.put(f"{bias}__scale", (scales[0] * scales[1]).astype(np.float32))
            terms.append(self._real((bias, scale, ""), 0))
        self._result(_WITH_BIAS[self._node.op_type], terms, result)

    def _integer(self, inputs: Sequence[str]) -> None:
        """x and w, then their zeros; the result is int32, without a scale."""
        one = self._weights.put(f"{self._node.output[0]}__one", np.asarray(1, np.float32))
        axis = 0 if self._node.op_type == "ConvInteger" else -1
        terms = [self._real((inputs[0], one, inputs[2])), self._real((inputs[1], one, inputs[3]), axis)]
        name = self._node.output[0] + SUMS
        self._make(_INTEGER[self._node.op_type], terms, name, **self._kept)
        self._make("Cast", [name], self._node.output[0], to=TensorProto.INT32)

    def _real(self, triple: Sequence[str], axis: int | None = None) -> str:
        """The real tensor of stored integers, their scale and zero; a scale of several numbers runs along `axis`."""
        name = f"{self._node.output[0]}__of_{len(self.nodes)}"
        self._make("DequantizeLinear", list(triple), name, **({} if axis is None else {"axis": axis}))
        return name

    def _result(self, kind: str, terms: Sequence[str], scale_and_zero: Sequence[str]) -> None:
        out = self._node.output[0]
        if not scale_and_zero[0]:  # QGemm may leave its result real
            self._make(kind, terms, out, **self._kept)
            return
        self._make(kind, terms, out + REAL, **self._kept)
        self._make("QuantizeLinear", [out + REAL, *scale_and_zero], out)

    def _make(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> None:
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        self.nodes.append(helper.make_node(kind, given, [output], name=output, **attributes))
