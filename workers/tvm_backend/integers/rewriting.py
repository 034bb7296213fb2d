"""Convolutions and products of a network whose factors are whole numbers, rewritten over groups of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.hardware import product_widths, vector_lanes
from workers.tvm_backend.integers.filtering import Filtered, filtered
from workers.tvm_backend.integers.finding import Factors, Form, Found, in_groups, is_pooling
from workers.tvm_backend.integers.grouping import GROUPINGS, PAIRS, Grouping
from workers.tvm_backend.integers.sums import Convolution, matrix_sums
from workers.tvm_backend.mutation import FUSABLE, OPAQUE, Rewriter, is_call, is_concatenation, static_shape
from workers.tvm_backend.winograd import schedules

_POOLING = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "layout", "out_layout")
FILTERED = "filtered"
"""Counted beside the names of groupings."""


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
    found = Found()
    for _, function in mod.functions_items():
        if among and isinstance(function, relax.Function):
            found.find(function, among)
    rewriter = _Rewriter(mod, found, vector_lanes(target), balance)
    return (rewriter.rewritten(mod) if found.products else mod), rewriter.counts


@mutator
class _Rewriter(Rewriter):
    def __init__(self, mod: tvm.IRModule, found: Found, lanes: int, balance: float | None) -> None:
        super().__init__(mod)
        self._products, self._forms, self._lanes, self._balance = found.products, found.forms, lanes, balance
        self._kept: dict[Any, _Kept] = {}
        self.counts: Counter[str] = Counter()

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if not isinstance(binding.var, relax.DataflowVar):  # handed out as it is
            super().visit_var_binding_(binding)
            return
        form = self._forms.get(binding.var)
        moved = self._pooled(binding.value) or self._joined(binding.value)
        if moved is not None and (form is None or (form.grouping, form.offset) == (moved.grouping, moved.offset)):
            kept = moved
        elif form is not None:
            kept = self._shortened(form, binding.value if moved is None else self._read_as(moved, "float32"))
        else:
            super().visit_var_binding_(binding)
            return
        self._kept[binding.var] = kept
        self.set_var_remap(binding.var, self._read_as(kept, "float32"))

    def _pooled(self, call: Any) -> _Kept | None:
        """The largest of numbers as they are kept: less what is taken off them they are in the same order."""
        kept = self._kept.get(call.args[0]) if is_pooling(call) else None
        if kept is None:
            return None
        attributes = {name: getattr(call.attrs, name) for name in _POOLING}
        return replace(kept, var=self.builder_.emit(relax.op.nn.max_pool2d(kept.var, **attributes)))

    def _joined(self, call: Any) -> _Kept | None:
        """Concatenated numbers that are all kept alike."""
        parts = [self._kept.get(part) for part in call.args[0]] if is_concatenation(call) else []
        kept = [part for part in parts if part is not None]
        if not kept or len(kept) < len(parts) or len({(part.grouping.name, part.offset) for part in kept}) > 1:
            return None
        joined = relax.op.concat([part.var for part in kept], int(call.attrs.axis))
        return replace(kept[0], var=self.builder_.emit(joined))

    def _shortened(self, form: Form, value: relax.Expr) -> _Kept:
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
        if kept is not None and (grouped := in_groups(call)) and not isinstance(kept.offset, relax.Var):
            sums = partial(grouped.in_groups, kept.offset)
            return self.computed(sums, grouped.name, kept.var, self.visit_expr(call.args[1]))
        return self._scaled(super().visit_call_(call))

    def _multiplied(self, call: relax.Call, factors: Factors, kept: _Kept) -> relax.Expr:
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

    def _summed(self, call: relax.Call, factors: Factors, data: relax.Var, offset: int | relax.Var) -> relax.Expr:
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
        convolution = Convolution.of(call)
        kind, sums = (convolution.name, convolution.sums) if convolution else ("matmul", matrix_sums)
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

    def _filtered(self, call: relax.Call, factors: Factors) -> Filtered | None:
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
