"""Convolutions and products of a network whose factors are whole numbers, rewritten over pairs of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.hardware import pair_widths, vector_lanes
from workers.tvm_backend.mutation import FUSABLE, OPAQUE, Rewriter, constant, is_call, static_shape
from workers.tvm_backend.pairs.filtering import Filtered, filtered
from workers.tvm_backend.pairs.spans import Bound, whole_span
from workers.tvm_backend.pairs.sums import MOST, ROOM, Convolution, matrix_sums, packed
from workers.tvm_backend.winograd import schedules


def rewritten(mod: tvm.IRModule, target: tvm.target.Target, balance: float | None) -> tuple[tvm.IRModule, int, int]:
    """`mod`, in NHWC and before it is lowered; how many operators were rewritten, and how many of them by Winograd's minimal
    filtering, for which it takes the machine's `balance`. Those are that read whole numbers which fit 16 bits, and whose sums
    fit 32 whatever is read. What they read is kept in 16 bits, for others too."""
    if not pair_widths(target):
        return mod, 0, 0
    found: list[Any] = []
    for _, function in mod.functions_items():
        if isinstance(function, relax.Function):
            found += _read_by_products(function)
    rewriter = _Rewriter(mod, set(found), vector_lanes(target), balance)
    return rewriter.rewritten(mod), len(found), rewriter.filtered


def _read_by_products(function: relax.Function) -> list[Any]:
    """The variables that those operators of a function read, one an operator."""
    values = relax.analysis.get_var2val(function)

    def bound(expr: Any) -> Any:
        return values[expr] if isinstance(expr, relax.Var) and expr in values else expr

    return [call.args[0] for call in values.values() if _factors(call, bound) is not None]


@mutator
class _Rewriter(Rewriter):
    def __init__(self, mod: tvm.IRModule, short: set[Any], lanes: int, balance: float | None) -> None:
        super().__init__(mod)
        self._short, self._lanes, self._balance = short, lanes, balance
        self.filtered = 0

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        if binding.var not in self._short:
            super().visit_var_binding_(binding)
            return
        emit = self.builder_.emit
        integers = emit(relax.op.astype(emit(self.visit_expr(binding.value)), "int16"))
        self.set_var_remap(binding.var, emit(relax.op.astype(integers, "float32")))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        factors = _factors(call, self.bound)
        if factors is None:
            return call
        weights, largest = factors
        data = self.bound(call.args[0]).args[0]
        if is_call(call, "relax.matmul"):
            sums = self._emit(matrix_sums, "matmul_pairs", data, relax.const(packed(weights)))
        elif way := self._filtered(call, weights, largest):
            self.filtered += 1
            tiles = self._emit(way.input.input, schedules.INPUT, data, pattern=OPAQUE)
            products = self._emit(matrix_sums, "matmul_pairs", tiles, relax.const(packed(way.weights)))
            sums = self._emit(way.output.output, schedules.OUTPUT, products)
        else:
            sums = self._emit(Convolution.of(call).sums, "conv2d_pairs", data, relax.const(packed(weights)))
        return self.builder_.normalize(relax.op.astype(sums, "float32"))

    def _filtered(self, call: relax.Call, weights: NDArray[np.float32], largest: float) -> Filtered | None:
        if self._balance is None:
            return None
        return filtered(call, weights, largest, self._lanes, self._balance)

    def _emit(self, sums: Callable[..., Any], name: str, *read: relax.Expr, pattern: int = FUSABLE) -> relax.Var:
        return self.builder_.emit(self.computed(sums, name, *read, pattern=pattern))


def _factors(call: Any, bound: Bound) -> tuple[NDArray[np.float32], float] | None:
    """Of an operator that is rewritten, its constant (..., channels, filters) and the largest of what it reads; else None."""
    convolution = is_call(call, "relax.nn.conv2d")
    if not (Convolution.fits(call) if convolution else is_call(call, "relax.matmul")):
        return None
    span = whole_span(call.args[0], bound)
    if span is None or not isinstance(call.args[0], relax.Var) or static_shape(call.args[0]) is None:
        return None  # before its weights are copied: all of a network in float32 would be
    weights = constant(call.args[1], bound)
    # One matrix only: in a batch of them each would have pairs of its own.
    if (
        weights is None
        or weights.ndim != (4 if convolution else 2)
        or weights.dtype != np.float32
        or not np.array_equal(weights, np.rint(weights))
    ):
        return None
    sizes, largest = np.abs(weights, dtype=np.float64), max(-span[0], span[1])
    sums = sizes.sum(axis=tuple(range(weights.ndim - 1)))
    return (weights, largest) if max(largest, sizes.max()) <= MOST and largest * sums.max() <= ROOM else None
