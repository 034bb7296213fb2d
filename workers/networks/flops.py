"""Work of a network, by the operators that make nearly all of it; a multiply and an add are two operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from onnx import ModelProto, NodeProto

from workers.networks.shape import TensorShape

Shapes = Mapping[str, TensorShape]


def flops_by_type(model: ModelProto, shapes: Shapes) -> dict[str, float]:
    """Floating-point operations of one inference by operator type; unknown dimensions count as one, ranks as nothing."""
    total: dict[str, float] = {}
    for node in model.graph.node:
        if work := node_flops(node, shapes):
            total[node.op_type] = total.get(node.op_type, 0.0) + work
    return total


def node_flops(node: NodeProto, shapes: Shapes) -> int:
    """Operations of one node; 0 for operators that are not counted."""
    rule = _RULES.get(node.op_type)
    place = 3 if node.op_type.startswith("QLinear") else 1  # behind x stand its scale and zero
    if rule is None or len(node.input) <= place or not node.output:
        return 0
    left, right, out = (_sizes(name, shapes) for name in (node.input[0], node.input[place], node.output[0]))
    if left is None or right is None or out is None or not left or not right:
        return 0
    return rule(node, left, right, out)


def _sizes(name: str, shapes: Shapes) -> list[int] | None:
    shape = shapes.get(name)
    if shape is None or shape.dims is None:
        return None
    return [d if isinstance(d, int) else 1 for d in shape.dims]


def _conv(node: NodeProto, left: list[int], right: list[int], out: list[int]) -> int:
    # Weights are (out, in / groups, *kernel): every output element is one dot product over the rest.
    return 2 * prod(out) * prod(right[1:])


def _transposed(node: NodeProto, left: list[int], right: list[int], out: list[int]) -> int:
    return 2 * prod(left) * prod(right[1:])


def _gemm(node: NodeProto, left: list[int], right: list[int], out: list[int]) -> int:
    transposed = any(a.name == "transA" and a.i for a in node.attribute)
    return 2 * prod(out) * left[0 if transposed else -1]


def _matmul(node: NodeProto, left: list[int], right: list[int], out: list[int]) -> int:
    return 2 * prod(out) * left[-1]


_RULES: dict[str, Callable[[NodeProto, list[int], list[int], list[int]], int]] = {
    "Conv": _conv,
    "ConvTranspose": _transposed,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
    "ConvInteger": _conv,
    "MatMulInteger": _matmul,
}
