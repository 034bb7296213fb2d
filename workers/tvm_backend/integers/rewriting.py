"""Convolutions and products of a network whose factors are whole numbers, rewritten over groups of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

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

_POOLING = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "layout", "out_layout")
FILTERED = "filtered"
"""Counted beside the names of groupings."""


@dataclass(frozen=True)
class _Form:
    """How a tensor is kept whose numbers are whole and lie in a span. With a `zero`, found only when the network runs, it is
    those numbers less the zero."""

    grouping: Grouping
    data: Span
    zero: relax.Expr | None = None

    @property
    def offset(self) -> int:
        """What is taken off the numbers to keep them."""
        offset = self.grouping.offset(self.data)
        assert offset is not None
        return int(offset)


@dataclass(frozen=True)
class _Factors:
    """Of an operator that is rewritten: what it reads, and its constant (..., channels, filters)."""

    read: _Form
    weights: NDArray[np.float32]


@dataclass(frozen=True)
class _Kept:
    """A tensor as it is kept: whole numbers less `offset`, which may be a tensor of one float32."""

    grouping: Grouping
    var: relax.Var
    offset: int | relax.Var


def rewritten(mod: tvm.IRModule, target: tvm.target.Target, balance: float | None) -> tuple[tvm.IRModule, Counter[str]]:
    """`mod`, in NHWC and before it is lowered; how many operators were rewritten, by the name of their grouping, and how many
    of them by Winograd's minimal filtering, for which it takes the machine's `balance`. Those are that read whole numbers,
    whose factors fit a grouping, and whose sums fit 32 bits whatever is read. What they read is kept as the grouping has it,
    for others too; and what convolutions in groups and poolings read, as shortly as it can be."""
    among = [grouping for grouping in GROUPINGS if product_widths(target, grouping.count)]
    products: dict[Any, _Factors] = {}
    forms: dict[Any, _Form] = {}
    for _, function in mod.functions_items():
        if among and isinstance(function, relax.Function):
            _find(function, among, products, forms)
    rewriter = _Rewriter(mod, products, forms, vector_lanes(target), balance)
    return (rewriter.rewritten(mod) if products else mod), rewriter.counts


def _find(
    function: relax.Function, among: list[Grouping], products: dict[Any, _Factors], forms: dict[Any, _Form]
) -> None:
    """The calls of a function that are rewritten; by variable, how the quickest of its readers wants it, or how it is
    shortest."""
    values = relax.analysis.get_var2val(function)

    def bound(expr: Any) -> Any:
        return values[expr] if isinstance(expr, relax.Var) and expr in values else expr

    def wanted(var: Any, form: _Form) -> None:
        had = forms.setdefault(var, form)
        if GROUPINGS.index(form.grouping) < GROUPINGS.index(had.grouping):
            forms[var] = form

    for call in values.values():
        if factors := _factors(call, bound, among):
            products[call] = factors
            wanted(call.args[0], factors.read)
    for call in values.values():
        if (_in_groups(call) or _is_pooling(call)) and isinstance(call.args[0], relax.Var):
            span = whole_span(call.args[0], bound)
            shortest = span and next((one for one in GROUPINGS if one.offset(span) is not None), None)
            if span and shortest and call.args[0] not in forms:
                forms[call.args[0]] = _Form(shortest, span)


def _in_groups(call: Any) -> bool:
    return is_call(call, "relax.nn.conv2d") and Convolution.fits(call) and int(call.attrs.groups) > 1


def _is_pooling(call: Any) -> bool:
    return is_call(call, "relax.nn.max_pool2d")


@mutator
class _Rewriter(Rewriter):
    def __init__(
        self,
        mod: tvm.IRModule,
        products: dict[Any, _Factors],
        forms: dict[Any, _Form],
        lanes: int,
        balance: float | None,
    ) -> None:
        super().__init__(mod)
        self._products, self._forms, self._lanes, self._balance = products, forms, lanes, balance
        self._kept: dict[Any, _Kept] = {}
        self.counts: Counter[str] = Counter()

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        form = self._forms.get(binding.var)
        pooled = self._pooled(binding.value)
        if pooled is not None and (form is None or (form.grouping, form.offset) == (pooled.grouping, pooled.offset)):
            kept = pooled
        elif form is not None:
            kept = self._shortened(form, binding.value if pooled is None else self._read_as(pooled, "float32"))
        else:
            super().visit_var_binding_(binding)
            return
        self._kept[binding.var] = kept
        self.set_var_remap(binding.var, self._read_as(kept, "float32"))

    def _pooled(self, call: Any) -> _Kept | None:
        """The largest of numbers as they are kept: less what is taken off them they are in the same order."""
        kept = self._kept.get(call.args[0]) if _is_pooling(call) else None
        if kept is None:
            return None
        attributes = {name: getattr(call.attrs, name) for name in _POOLING}
        return replace(kept, var=self.builder_.emit(relax.op.nn.max_pool2d(kept.var, **attributes)))

    def _shortened(self, form: _Form, value: relax.Expr) -> _Kept:
        emit, dtype, offset = self.builder_.emit, form.grouping.dtype, form.offset
        if form.zero is not None:
            numbers, zero = (self.visit_expr(term) for term in value.args)
            return _Kept(form.grouping, emit(relax.op.astype(numbers, dtype)), emit(relax.op.negative(zero)))
        whole = emit(self.visit_expr(value))
        moved = emit(relax.op.subtract(whole, relax.const(np.float32(offset)))) if offset else whole
        return _Kept(form.grouping, emit(relax.op.astype(moved, dtype)), offset)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        kept = self._kept.get(call.args[0]) if call.args else None
        factors = self._products.get(call)
        if kept is not None and factors is not None:
            return self._multiplied(call, factors, kept)
        if kept is not None and _in_groups(call) and not isinstance(kept.offset, relax.Var):
            sums = partial(Convolution.of(call).in_groups, kept.offset)
            return self.computed(sums, "conv2d", kept.var, self.visit_expr(call.args[1]))
        return self._scaled(super().visit_call_(call))

    def _multiplied(self, call: relax.Call, factors: _Factors, kept: _Kept) -> relax.Expr:
        grouping = factors.read.grouping
        self.counts[grouping.name] += 1
        if kept.grouping is grouping:
            sums = self._summed(call, factors, kept.var, kept.offset)
        else:  # a quicker one for another reader
            sums = self._summed(call, factors, self._read_as(kept, grouping.dtype), 0)
        return self.builder_.normalize(relax.op.astype(sums, "float32"))

    def _scaled(self, call: relax.Call) -> relax.Expr:
        """Products with a scale take it as an argument: as a number in the program, each layer's would be a program of its
        own, to be tuned by itself."""
        if not any(is_call(call, name) for name in ("relax.multiply", "relax.divide")):
            return call
        value, scale = call.args
        if not isinstance(scale, tvm.ir.GenericConst) or static_shape(scale) != () or static_shape(value) is None:
            return call
        given = relax.Call(call.op, [value, relax.const(scale.value.numpy().reshape(1))], call.attrs)
        scaled = self.builder_.normalize(given)
        return scaled if static_shape(value) else relax.op.reshape(self.builder_.emit(scaled), ())

    def _summed(self, call: relax.Call, factors: _Factors, data: relax.Var, offset: int | relax.Var) -> relax.Expr:
        """Of what `data` and the `offset` come to."""
        grouping, weights, emit = factors.read.grouping, factors.weights, self.builder_.emit
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
        blank = 0 if isinstance(offset, relax.Var) else -offset
        found = self._emit(partial(sums, grouping, blank), f"{kind}_{grouping.name}", data, _packed(grouping, weights))
        totals = weights.sum(axis=tuple(range(weights.ndim - 1)), dtype=np.float64)
        if isinstance(offset, relax.Var):
            whole = emit(relax.op.astype(offset, "int32"))
            more = emit(relax.op.multiply(whole, relax.const(totals.astype(np.int32))))
        elif offset:
            more = relax.const((totals * offset).astype(np.int32))
        else:
            return found
        return emit(relax.op.add(found, more))

    def _filtered(self, call: relax.Call, factors: _Factors) -> Filtered | None:
        if self._balance is None or factors.read.grouping is not PAIRS:
            return None  # of 8 bits there is no room for the transforms' sums
        largest = max(-factors.read.data[0], factors.read.data[1])
        return filtered(call, factors.weights, largest, self._lanes, self._balance)

    def _read_as(self, kept: _Kept, dtype: str) -> relax.Var:
        """The numbers themselves."""
        emit = self.builder_.emit
        wider = emit(relax.op.astype(kept.var, dtype))
        if isinstance(kept.offset, relax.Var):
            return emit(relax.op.add(wider, emit(relax.op.astype(kept.offset, dtype))))
        return emit(relax.op.add(wider, relax.const(np.asarray(kept.offset, dtype)))) if kept.offset else wider

    def _emit(self, sums: Callable[..., Any], name: str, *read: relax.Expr, pattern: int = FUSABLE) -> relax.Var:
        return self.builder_.emit(self.computed(sums, name, *read, pattern=pattern))


def _packed(grouping: Grouping, weights: NDArray[np.float32]) -> relax.Expr:
    return relax.const(grouping.packed(weights))


def _factors(call: Any, bound: Bound, among: list[Grouping]) -> _Factors | None:
    """Of an operator that is rewritten; else None."""
    convolution = is_call(call, "relax.nn.conv2d")
    if not (Convolution.fits(call) if convolution else is_call(call, "relax.matmul")) or _in_groups(call):
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
    # Around a convolution's input such a zero cannot lie: what is padded with is a constant.
    moving = None if convolution else _less_a_zero(call.args[0], bound)
    for one in among:
        if one.takes(weights, span):
            return _Factors(_Form(one, span), weights)
        if moving is not None and one.takes(weights, moving.data, moving.zero):
            return _Factors(_Form(one, moving.data, moving.expr), weights)
    return None


class _LessAZero(NamedTuple):
    """Whole numbers between `data` less one between `zero`, which `expr` tells."""

    data: Span
    zero: Span
    expr: relax.Expr


def _less_a_zero(expr: Any, bound: Bound) -> _LessAZero | None:
    """As networks have it that are quantised while they run."""
    expr = bound(expr)
    if not is_call(expr, "relax.subtract") or static_shape(expr.args[1]) not in ((), (1,)):
        return None
    data, zero = (whole_span(term, bound) for term in expr.args)
    return _LessAZero(data, zero, expr.args[1]) if data and zero else None
