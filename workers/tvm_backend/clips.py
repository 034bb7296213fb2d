"""Clips as such again: c - Relu(c - Relu(x)), through which a layout passes, is two operations more of every number."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import Rewriter, constant, is_call, static_shape

RECTIFIED, TAKEN_OFF = "relax.nn.relu", "relax.subtract"


@tvm.transform.module_pass(opt_level=0, name="ClipAgain")
class Clip:
    """What `networks.rewriting.clips_to_relus` wrote is a Clip from 0 once more, and exact: for when layouts are settled."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return relax.transform.DeadCodeElimination()(_Clipper(mod).rewritten(mod))


@mutator
class _Clipper(Rewriter):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        shape, call = static_shape(call), super().visit_call_(call)
        bound, left = self._taken_off(call)
        above, value = self._taken_off(self._rectified(left))
        value = self._rectified(value)
        same = value is not None and bound == above and static_shape(value) == shape  # c may have more axes than x
        return relax.op.clip(value, 0.0, bound) if same else call

    def _taken_off(self, expr: Any) -> tuple[float | None, Any]:
        """Of c - x both; of anything else neither."""
        call = self.bound(expr)
        number = constant(call.args[0], self.bound) if is_call(call, TAKEN_OFF) else None
        return (None, None) if number is None or number.size != 1 else (float(number.reshape(())), call.args[1])

    def _rectified(self, expr: Any) -> Any:
        """Of Relu(x) x; of anything else None."""
        call = self.bound(expr)
        return call.args[0] if is_call(call, RECTIFIED) else None
