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
    Weights,
    attribute,
    live,
    makers_of,
    operator_types,
    rename,
    replace_nodes,
    told,
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


def _chosen(
    where: NodeProto, makers: Mapping[str, NodeProto], weights: Weights, shapes: Mapping[str, TensorShape]
) -> str:
    """What it always takes; "" where that depends."""
    condition, met, other = where.input
    if condition in weights:
        asked = weights.get(condition)
        return str(met if asked.all() else "" if asked.any() else other)
    asking, shares = makers.get(condition), makers.get(other)
    if asking is None or asking.op_type != "IsNaN" or asking.input[0] != other:
        return ""
    if shares is None or shares.op_type != "Softmax":
        return ""
    last = attribute(shares, "axis", -1) in (-1, len(sizes_of(shapes, other)) - 1)
    return str(other) if _finite(shares.input[0], last, makers, weights) else ""


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
