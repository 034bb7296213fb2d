"""Which tensors hold whole numbers, and between which they lie, told from how they are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from workers.tvm_backend.integers.grouping import Span
from workers.tvm_backend.mutation import constant, is_call, is_concatenation

Bound = Callable[[Any], Any]
"""What a variable stands for, any other expression itself."""

Known = dict[Any, Span | None]

_MOVED = frozenset(
    f"relax.{name}" for name in ("permute_dims", "reshape", "flatten", "squeeze", "expand_dims", "nn.max_pool2d")
)
"""What hands on some of the values that it reads."""


def whole_span(expr: Any, bound: Bound, known: Known | None = None) -> Span | None:
    """The least and the greatest value of a tensor of whole numbers; None where it may hold others. `known` are those of
    variables that were asked for: sums of sums read the same ones over and over."""
    known = {} if known is None else known
    if not isinstance(expr, relax.Var):
        return _found(expr, bound, known)
    if expr not in known:
        known[expr] = _found(expr, bound, known)
    return known[expr]


def _found(expr: Any, bound: Bound, known: Known) -> Span | None:
    expr = bound(expr)
    if isinstance(expr, tvm.ir.GenericConst):
        values = expr.value.numpy()
        return _span(values) if values.size and np.array_equal(values, np.rint(values)) else None
    name = expr.op.name if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op) else ""
    if name == "relax.round":
        return _rounded(bound(expr.args[0]), bound, known)
    if name == "relax.astype":
        return _cast(whole_span(expr.args[0], bound, known), _held(expr.args[0]), _held(expr))
    if name in _MOVED or name == "relax.nn.relu":
        found = whole_span(expr.args[0], bound, known)
        return found if name in _MOVED else found and (max(found[0], 0.0), max(found[1], 0.0))
    if is_concatenation(expr):
        return _around([whole_span(part, bound, known) for part in expr.args[0]])
    if name in ("relax.add", "relax.subtract"):
        one = whole_span(expr.args[0], bound, known)
        other = whole_span(expr.args[1], bound, known) if one is not None else None
        if one is None or other is None:
            return None
        low, high = other if name == "relax.add" else (-other[1], -other[0])
        return one[0] + low, one[1] + high
    return None


def _rounded(expr: Any, bound: Bound, known: Known) -> Span:
    """Of whole numbers times a constant it is known where they lie."""
    factor = constant(expr.args[1], bound) if is_call(expr, "relax.multiply") else None
    found = whole_span(expr.args[0], bound, known) if factor is not None and factor.size == 1 else None
    if factor is None or found is None or not all(map(math.isfinite, found)):
        return -math.inf, math.inf
    low, high = sorted(float(np.rint(np.float32(end) * np.float32(factor.item()))) for end in found)
    return low, high


def _around(spans: Sequence[Span | None]) -> Span | None:
    """All of them, where all are known."""
    found = [span for span in spans if span is not None]
    return (min(low for low, _ in found), max(high for _, high in found)) if len(found) == len(spans) else None


def _held(expr: Any) -> Span | None:
    """What a short type of integers holds."""
    dtype = str(expr.ty.dtype.dtype)
    if dtype not in ("int8", "uint8", "int16"):
        return None
    found = np.iinfo(dtype)
    return float(found.min), float(found.max)


def _cast(found: Span | None, before: Span | None, after: Span | None) -> Span | None:
    """Of `found` in a type that holds `before`, cast to one that holds `after`: where that is too short, numbers come round."""
    if found is None or (before is not None and not _contains(before, found)):
        found = before
    return after if after is not None and (found is None or not _contains(after, found)) else found


def _contains(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _span(values: Any) -> Span:
    return float(values.min()), float(values.max())
