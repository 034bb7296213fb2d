"""Where an exporter has a number in place of others that are never there, and asks for them all the same.

PyTorch's attention has zeros where a row of scores is masked whole, of which a Softmax makes NaN: its exporter writes that
behind every Softmax, masked or not, and ONNX's definition of an Attention asks it of the mask.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.graph import (
    Array,
    Parts,
    Weights,
    attribute,
    live,
    makers_of,
    operator_types,
    rename,
    replace_nodes,
    rewrite_ends,
    told,
    uses,
)
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes

_SUMS = frozenset({"Conv", "Einsum", "Gemm", "MatMul"})
"""What these make of finite numbers is finite, short of an overflow, behind which nothing means anything."""
_MOVING = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def guards_without_cause(model: ModelProto) -> str | None:
    """A Where whose condition is always met, or never, hands on what it takes. So does one that looks for NaN in a Softmax of
    sums of products, to which constants are added that mask no row whole."""
    if "Where" not in operator_types(model):
        return None
    graph, weights, shapes = model.graph, Weights(model.graph), tensor_shapes(model)
    makers, kept = makers_of(graph), {value.name for value in graph.output}
    names: dict[str, str] = {}
    for node in graph.node:
        source = _chosen(node, makers, weights, shapes) if node.op_type == "Where" else ""
        sizes = sizes_of(shapes, source)
        if sizes and node.output[0] not in kept and sizes == sizes_of(shapes, node.output[0]):
            names[node.output[0]] = source
    rename(graph, names)
    if names:
        replace_nodes(graph, live(graph))
    return told(
        len(names), "choice of what is always the same was made", "choices of what is always the same were made"
    )


def guards_behind_products(model: ModelProto) -> str | None:
    """Zeros in place of whole rows of a Softmax become zeros in place of those of what they weigh, as part of the product's
    program: a Softmax with a choice behind it takes twice its time."""
    if not operator_types(model) >= {"MatMul", "Softmax", "Where"}:
        return None
    graph, weights, shapes, readers = model.graph, Weights(model.graph), tensor_shapes(model), uses(model)
    makers = makers_of(graph)

    def behind(product: NodeProto) -> list[NodeProto]:
        where = makers.get(product.input[0]) if product.op_type == "MatMul" else None
        if where is None or where.op_type != "Where" or readers[where.output[0]] != 1:
            return []
        condition, zero, shares = where.input
        alone = zero in weights and weights.get(zero).size == 1 and not weights.get(zero).any()
        sizes = sizes_of(shapes, shares)
        if not alone or not _goes_by_row(shares, makers, shapes) or sizes != sizes_of(shapes, where.output[0]):
            return []
        whole = _asks_for_nan(condition, shares, makers)
        if len(sizes_of(shapes, product.input[1])) < 2 or not (whole or sizes_of(shapes, condition)[-1:] == (1,)):
            return []
        parts = Parts(product.output[0], weights)
        weighed = parts.add("MatMul", "weighed", shares, product.input[1])
        asked = parts.add("IsNaN", "masked", weighed) if whole else condition
        parts.add("Where", "kept", asked, zero, weighed)
        return parts.all()

    return told(
        rewrite_ends(graph, behind),
        "attention has zeros for what is masked whole behind its product",
        "attentions have zeros for what is masked whole behind their products",
    )


def _chosen(
    where: NodeProto, makers: Mapping[str, NodeProto], weights: Weights, shapes: Mapping[str, TensorShape]
) -> str:
    """What it always takes; "" where that depends."""
    condition, met, other = where.input
    if condition in weights:
        asked = weights.get(condition)
        return str(met if asked.all() else "" if asked.any() else other)
    shares = makers.get(other)
    if shares is None or shares.op_type != "Softmax" or not _asks_for_nan(condition, other, makers):
        return ""
    by_row = _goes_by_row(other, makers, shapes)
    return str(other) if _finite(shares.input[0], by_row, makers, weights) else ""


def _asks_for_nan(condition: str, asked: str, makers: Mapping[str, NodeProto]) -> bool:
    asking = makers.get(condition)
    return asking is not None and asking.op_type == "IsNaN" and asking.input[0] == asked


def _goes_by_row(name: str, makers: Mapping[str, NodeProto], shapes: Mapping[str, TensorShape]) -> bool:
    """Whether a Softmax along the last axis made it."""
    made = makers.get(name)
    if made is None or made.op_type != "Softmax":
        return False
    return attribute(made, "axis", -1) in (-1, len(sizes_of(shapes, name)) - 1)


def _finite(scores: str, by_row: bool, makers: Mapping[str, NodeProto], weights: Weights) -> bool:
    """Whether they are finite, or where a Softmax goes `by_row` minus infinity besides, which one constant may add to some of a
    row."""
    waiting, masked = [(scores, by_row)], False
    while waiting:
        name, added = waiting.pop()
        if name in weights:
            numbers = weights.get(name)
            if not np.isfinite(numbers).all():
                if masked or not added or not _leaves_some(numbers):
                    return False
                masked = True
            continue
        node = makers.get(name)
        if node is None:
            return False
        kind = node.op_type
        if kind in _SUMS:
            continue
        if kind == "Add":
            waiting += [(one, added) for one in node.input]
        elif kind in ("Mul", "Sub"):
            waiting += [(one, False) for one in node.input]
        elif kind in _MOVING or (kind == "Div" and node.input[1] in weights and weights.get(node.input[1]).all()):
            waiting.append((node.input[0], False))
        else:
            return False
    return True


def _leaves_some(mask: Array) -> bool:
    """Whether a finite number is left in each of its rows, and none is NaN or infinity."""
    return bool(mask.ndim and (mask < np.inf).all() and np.isfinite(mask).any(axis=-1).all())
