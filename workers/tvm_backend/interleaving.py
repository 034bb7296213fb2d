"""Channels of several tensors put in turns, as a shuffle of what was concatenated does, and what a split takes of them."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.concatenation import interleaved
from workers.tvm_backend.mutation import PERMUTED, Rewriter, is_call, is_concatenation, permutation, static_shape


@tvm.transform.module_pass(opt_level=0, name="InterleaveChannels")
class Interleave:
    """A shuffle of as many groups as tensors were concatenated is one operator, and so is each part that a split takes of it:
    nothing is copied that is only copied again."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        values: dict[Any, Any] = {}
        for _, function in mod.functions_items():
            if isinstance(function, relax.Function):
                values.update(relax.analysis.get_var2val(function).items())
        return relax.transform.DeadCodeElimination()(_Interleaver(mod, values).rewritten(mod))


@mutator
class _Interleaver(Rewriter):
    def __init__(self, mod: tvm.IRModule, values: dict[Any, Any]) -> None:
        super().__init__(mod)
        self._values = values

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        sections = _sections(call) if is_call(call, "relax.split") else None
        parts = self._shuffled(call if sections is None else call.args[0])
        if parts is None:
            return super().visit_call_(call)
        if sections is None:
            return self._interleaved(parts, 0, int(call.ty.shape[-1]))
        return relax.Tuple([self._interleaved(parts, *section) for section in sections])

    def _interleaved(self, parts: list[relax.Expr], start: int, end: int) -> relax.Var:
        read = [self.visit_expr(part) for part in parts]
        return self.builder_.emit_te(interleaved, read, start, end, primfunc_name_hint="interleave")

    def _shuffled(self, expr: Any) -> list[relax.Expr] | None:
        """Tensors whose channels, their last axis, `expr` has in turns; else None."""
        after = self._value(expr)
        turned = self._read_by(after, "relax.reshape")
        before = self._read_by(turned, PERMUTED)
        joined = self._read_by(before, "relax.reshape")
        shape = static_shape(joined) if is_concatenation(joined) else None
        if shape is None or int(joined.attrs.axis) % len(shape) != len(shape) - 1:
            return None
        parts = list(joined.args[0])
        *places, channels = shape
        grouped = (*places, len(parts), channels // len(parts))
        swapped = [*range(len(places)), len(places) + 1, len(places)]
        alike = len({static_shape(part) for part in parts}) == 1
        same = static_shape(before) == grouped and permutation(turned) == swapped and static_shape(after) == shape
        return parts if alike and same else None

    def _read_by(self, call: Any, name: str) -> Any:
        """What a call of TVM's operator `name` reads first; None for any other expression."""
        return self._value(call.args[0]) if is_call(call, name) else None

    def _value(self, expr: Any) -> Any:
        return self._values.get(expr, expr) if isinstance(expr, relax.Var) else expr


def _sections(split: relax.Call) -> list[tuple[int, int]] | None:
    """Where each part of the last axis starts and ends; None where it is another axis."""
    shape = static_shape(split.args[0])
    if not shape or int(split.attrs.axis) % len(shape) != len(shape) - 1:
        return None
    asked, whole = split.attrs.indices_or_sections, shape[-1]
    if isinstance(asked, tvm.tirx.IntImm):
        step = -(-whole // int(asked))
        return [(start, min(start + step, whole)) for start in range(0, whole, step)]
    ends = [int(place) for place in asked]
    return list(zip([0, *ends], [*ends, whole], strict=True))
