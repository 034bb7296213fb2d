"""Convolutions and products of a network whose factors are whole numbers, rewritten over groups of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.hardware import product_widths, vector_lanes
from workers.tvm_backend.integers.filtering import Filtered, filtered
from workers.tvm_backend.integers.grouping import GROUPINGS, PAIRS, Grouping, Span
from workers.tvm_backend.integers.spans import Bound, whole_span
from workers.tvm_backend.integers.sums import Convolution, matrix_sums
from workers.tvm_backend.mutation import FUSABLE, OPAQUE, Rewriter, constant, is_call, static_shape
from workers.tvm_backend.winograd import schedules

FILTERED = "filtered"
"""Counted beside the names of groupings."""


@dataclass(frozen=True)
class _Factors:
    """Of an operator that is rewritten: its constant (..., channels, filters), and what the numbers that it reads lie
    between."""

    grouping: Grouping
    weights: NDArray[np.float32]
    data: Span

    @property
    def offset(self) -> int:
        """What is taken off what is read."""
        offset = self.grouping.offset(self.data)
        assert offset is not None
        return int(offset)


@dataclass(frozen=True)
class _Kept:
    """A tensor as it is kept: `var` holds whole numbers less `offset`."""

    grouping: Grouping
    var: relax.Var
    offset: int


def rewritten(mod: tvm.IRModule, target: tvm.target.Target, balance: float | None) -> tuple[tvm.IRModule, Counter[str]]:
    """`mod`, in NHWC and before it is lowered; how many operators were rewritten, by the name of their grouping, and how many
    of them by Winograd's minimal filtering, for which it takes the machine's `balance`. Those are that read whole numbers,
    whose factors fit a grouping, and whose sums fit 32 bits whatever is read. What they read is kept as the grouping has it,
    for others too."""
    among = [grouping for grouping in GROUPINGS if product_widths(target, grouping.count)]
    found: dict[Any, _Factors] = {}
    for _, function in mod.functions_items():
        if among and isinstance(function, relax.Function):
            found |= _products(function, among)
    rewriter = _Rewriter(mod, found, vector_lanes(target), balance)
    return (rewriter.rewritten(mod) if found else mod), rewriter.counts


def _products(function: relax.Function, among: list[Grouping]) -> Iterator[tuple[Any, _Factors]]:
    """The calls of a function that are rewritten."""
    values = relax.analysis.get_var2val(function)

    def bound(expr: Any) -> Any:
        return values[expr] if isinstance(expr, relax.Var) and expr in values else expr

    for call in values.values():
        if factors := _factors(call, bound, among):
            yield call, factors


@mutator
class _Rewriter(Rewriter):
    def __init__(self, mod: tvm.IRModule, products: dict[Any, _Factors], lanes: int, balance: float | None) -> None:
        super().__init__(mod)
        self._products, self._lanes, self._balance = products, lanes, balance
        ranks = {grouping: rank for rank, grouping in enumerate(GROUPINGS)}
        self._read: dict[Any, _Factors] = {}
        """By variable, the first reader of those with the quickest grouping."""
        for call, factors in products.items():
            had = self._read.setdefault(call.args[0], factors)
            if ranks[factors.grouping] < ranks[had.grouping]:
                self._read[call.args[0]] = factors
        self._kept: dict[Any, _Kept] = {}
        self.counts: Counter[str] = Counter()

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        factors = self._read.get(binding.var)
        if factors is None:
            super().visit_var_binding_(binding)
            return
        value = self.builder_.emit(self.visit_expr(binding.value))
        kept = self._shifted(value, -factors.offset, factors.grouping.dtype)
        self._kept[binding.var] = _Kept(factors.grouping, kept, factors.offset)
        self.set_var_remap(binding.var, self._unshifted(kept, factors.offset, "float32"))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        factors = self._products.get(call)
        kept = self._kept.get(call.args[0]) if factors else None
        if factors is None or kept is None:
            return super().visit_call_(call)
        data = kept.var
        if kept.grouping is not factors.grouping:  # a quicker one for another reader
            data = self._unshifted(kept.var, kept.offset, factors.grouping.dtype)
        self.counts[factors.grouping.name] += 1
        return self.builder_.normalize(relax.op.astype(self._summed(call, factors, data), "float32"))

    def _summed(self, call: relax.Call, factors: _Factors, data: relax.Var) -> relax.Expr:
        grouping, weights, offset = factors.grouping, factors.weights, factors.offset
        way = self._filtered(call, factors)
        if way is not None:
            self.counts[FILTERED] += 1
            tiles = self._emit(way.input.input, schedules.INPUT, data, pattern=OPAQUE)
            products = self._emit(
                partial(matrix_sums, grouping, 0), f"matmul_{grouping.name}", tiles, _packed(grouping, way.weights)
            )
            return self._emit(way.output.output, schedules.OUTPUT, products)
        kind, sums = "matmul", matrix_sums
        if not is_call(call, "relax.matmul"):
            kind, sums = "conv2d", Convolution.of(call).sums
        found = self._emit(
            partial(sums, grouping, -offset), f"{kind}_{grouping.name}", data, _packed(grouping, weights)
        )
        if not offset:
            return found
        constant = weights.sum(axis=tuple(range(weights.ndim - 1)), dtype=np.float64) * offset
        return self.builder_.emit(relax.op.add(found, relax.const(constant.astype(np.int32))))

    def _filtered(self, call: relax.Call, factors: _Factors) -> Filtered | None:
        if self._balance is None or factors.grouping is not PAIRS:
            return None  # of 8 bits there is no room for the transforms' sums
        largest = max(-factors.data[0], factors.data[1])
        return filtered(call, factors.weights, largest, self._lanes, self._balance)

    def _shifted(self, value: relax.Expr, by: int, dtype: str) -> relax.Var:
        """Whole numbers of float32, and `by`."""
        moved = self.builder_.emit(relax.op.add(value, relax.const(np.float32(by)))) if by else value
        return self.builder_.emit(relax.op.astype(moved, dtype))

    def _unshifted(self, kept: relax.Var, offset: int, dtype: str) -> relax.Var:
        wider = self.builder_.emit(relax.op.astype(kept, dtype))
        return self.builder_.emit(relax.op.add(wider, relax.const(np.asarray(offset, dtype)))) if offset else wider

    def _emit(self, sums: Callable[..., Any], name: str, *read: relax.Expr, pattern: int = FUSABLE) -> relax.Var:
        return self.builder_.emit(self.computed(sums, name, *read, pattern=pattern))


def _packed(grouping: Grouping, weights: NDArray[np.float32]) -> relax.Expr:
    return relax.const(grouping.packed(weights))


def _factors(call: Any, bound: Bound, among: list[Grouping]) -> _Factors | None:
    """Of an operator that is rewritten; else None."""
    convolution = is_call(call, "relax.nn.conv2d")
    if not (Convolution.fits(call) if convolution else is_call(call, "relax.matmul")):
        return None
    span = whole_span(call.args[0], bound)
    if span is None or not isinstance(call.args[0], relax.Var) or static_shape(call.args[0]) is None:
        return None  # before its weights are copied: all of a network in float32 would be
    weights = constant(call.args[1], bound)
    # One matrix only: in a batch of them each would have groups of its own.
    if (
        weights is None
        or weights.ndim != (4 if convolution else 2)
        or weights.dtype != np.float32
        or not np.array_equal(weights, np.rint(weights))
    ):
        return None
    return next((_Factors(one, weights, span) for one in among if one.takes(weights, span)), None)
