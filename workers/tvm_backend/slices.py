"""Slices of what is only addressed anew, read where it lies: queries, keys and values of an attention."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import PERMUTED, Rewriter, constant, is_call, static_shape

TAKEN = "relax.take"
MOST = 4
"""Places that are taken of one tensor: each is an operator of its own, and the steps of a sequence are better one."""
ADDRESSED = ("relax.reshape", PERMUTED, "relax.squeeze", "relax.expand_dims")


@tvm.transform.module_pass(opt_level=0, name="SliceWhereItLies")
class Slice:
    """What is taken at one place of an axis is a slice, with a copy of the reshaping and permuting before it: TVM fuses no
    `take`, and what several read it computes whole, to be copied again in parts."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return relax.transform.DeadCodeElimination()(_Slicer(mod).rewritten(mod))


@mutator
class _Slicer(Rewriter):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self._readers = Counter[Any]()
        for _, function in mod.functions_items():
            if isinstance(function, relax.Function):
                calls = relax.analysis.get_var2val(function).values()
                self._readers.update(call.args[0] for call in calls if is_call(call, TAKEN))

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        few = is_call(call, TAKEN) and self._readers[call.args[0]] <= MOST
        call = super().visit_call_(call)
        if not few or call.attrs.axis is None:
            return call
        place, shape = constant(call.args[1], self.bound), static_shape(call.args[0])
        if place is None or place.size != 1 or place.ndim > 1 or not shape:
            return call
        axis = int(call.attrs.axis) % len(shape)
        begin = int(place.reshape(())) % shape[axis]
        part = relax.op.strided_slice(self._again(call.args[0]), [axis], [begin], [begin + 1])
        return part if place.ndim else relax.op.squeeze(self.builder_.emit(part), [axis])

    def _again(self, expr: relax.Expr) -> relax.Expr:
        """The same with what addresses it computed for this reader alone."""
        call = self.bound(expr)
        if not any(is_call(call, name) for name in ADDRESSED):
            return expr
        return self.builder_.emit(relax.Call(call.op, [self._again(call.args[0]), *call.args[1:]], call.attrs))
