"""Operators on whole numbers and truth values that TVM has for others only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, called, operator_types, rewired, rewrite, told
from workers.networks.shapes import tensor_shapes

_UNSIGNED = frozenset(int(t) for t in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64))
_SHORT = frozenset(int(t) for t in (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16))
_BOOL = int(TensorProto.BOOL)
_WHOLE = _UNSIGNED | _SHORT | {int(TensorProto.INT32), int(TensorProto.INT64), _BOOL}


def whole_numbers_as_others(model: ModelProto) -> str | None:
    """TopK of few bits looks in int32, means of whole numbers get their type, lengths are the roots of sums of squares, and
    signs and PRelus are written out. Truth values are equal where not one alone is true, and their extremes those of 0 and 1.
    Raises NetworkError for logarithms of sums, which would differ by what they round."""
    if not operator_types(model) & _RULES.keys():
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def written(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type in _RULES else None
        return [] if shape is None or shape.dtype not in _WHOLE else _RULES[node.op_type](node, shape.dtype, weights)

    count = rewrite(model.graph, written)
    return told(
        count,
        "operator on whole numbers or truth values was written by others",
        "operators on whole numbers or truth values were written by others",
    )


def _topk(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    if dtype not in _SHORT:
        return []
    source, result = node.input[0], node.output[0]
    node.input[0], node.output[0] = f"{result}__of", f"{result}__found"
    return [
        helper.make_node("Cast", [source], [node.input[0]], to=TensorProto.INT32),
        node,
        helper.make_node("Cast", [node.output[0]], [result], to=dtype),
    ]


def _mean(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    (result,) = node.output
    node.output[0] = f"{result}__wide"
    return [node, helper.make_node("Cast", [node.output[0]], [result], to=dtype)]


def _length(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    (result,) = node.output
    squares, real, root = (f"{result}__{word}" for word in ("squares", "real", "root"))
    summed = rewired(node, node.input, squares)
    summed.op_type = "ReduceSumSquare"
    return [
        summed,
        helper.make_node("Cast", [squares], [real], to=TensorProto.DOUBLE),
        helper.make_node("Sqrt", [real], [root]),
        helper.make_node("Cast", [root], [result], to=dtype),
    ]


def _sign(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    if dtype not in _UNSIGNED:
        return []
    (source,), (result,) = node.input, node.output
    return [
        helper.make_node("Cast", [source], [f"{result}__some"], to=TensorProto.BOOL),
        helper.make_node("Cast", [f"{result}__some"], [result], to=dtype),
    ]


def _prelu(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    (source, slope), (result,) = node.input, node.output
    if dtype in _UNSIGNED:
        return [helper.make_node("Identity", [source], [result])]
    zero = weights.put(f"{result}__zero", np.asarray(0, helper.tensor_dtype_to_np_dtype(dtype)))
    below, steep = f"{result}__below", f"{result}__steep"
    return [
        helper.make_node("Less", [source, zero], [below]),
        helper.make_node("Mul", [source, slope], [steep]),
        helper.make_node("Where", [below, steep, source], [result]),
    ]


def _equal(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    if dtype != _BOOL:
        return []
    (result,) = node.output
    return [
        helper.make_node("Xor", node.input, [f"{result}__unlike"]),
        helper.make_node("Not", [f"{result}__unlike"], [result]),
    ]


def _extreme(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    if dtype != _BOOL:
        return []
    (source, *axes), (result,) = node.input, node.output
    counted, found = f"{result}__counted", f"{result}__found"
    return [
        helper.make_node("Cast", [source], [counted], to=TensorProto.UINT8),
        rewired(node, [counted, *axes], found),
        helper.make_node("Cast", [found], [result], to=_BOOL),
    ]


def _refused(node: NodeProto, dtype: int, weights: Weights) -> list[NodeProto]:
    reason = "it is a logarithm of whole numbers, which TVM does not compute"
    raise NetworkError(called(node), reason, "export it with a Cast to float32 before it")


_RULES: dict[str, Callable[[NodeProto, int, Weights], list[NodeProto]]] = {
    "TopK": _topk,
    "ReduceMean": _mean,
    "ReduceL2": _length,
    "ReduceLogSum": _refused,
    "ReduceLogSumExp": _refused,
    "Sign": _sign,
    "PRelu": _prelu,
    "Equal": _equal,
    "ReduceMax": _extreme,
    "ReduceMin": _extreme,
}
