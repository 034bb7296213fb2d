"""Checks of arguments where somebody else's arrive, and nowhere else.

TVM writes them into every program: a third of the time that a SqueezeNet takes to compile, and most of its machine code. What
one program hands another in memory that TVM took for it has the shape and the strides that it was compiled for.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx

from workers.tvm_backend.mutation import is_call

CALL = "relax.call_tir"
MARK = "tuning.unchecked"


def marked(mod: tvm.IRModule) -> tvm.IRModule:
    """The network with a mark on each program that is only ever given constants and what other programs made: functions that
    TVM makes later have none."""
    called, checked = set[str](), set[str]()
    for _, function in mod.functions_items():
        if isinstance(function, relax.Function):
            made = _Made(mod, function)

            def visit(expr: Any, made: _Made = made) -> None:
                if isinstance(expr, relax.Call):
                    names = {one.name_hint for one in (expr.op, *expr.args) if isinstance(one, tvm.ir.GlobalVar)}
                    called.update(names)
                    if names and not (is_call(expr, CALL) and made(expr.args[1])):
                        checked.update(names)

            relax.analysis.post_order_visit(function, visit)
    functions = {
        variable: function.with_attr(MARK, True) if variable.name_hint in called - checked else function
        for variable, function in mod.functions_items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


class _Made:
    """Whether an expression of a function lies in memory that TVM took for it; what is not known may be an input."""

    def __init__(self, mod: tvm.IRModule, function: relax.Function) -> None:
        self._mod, self._values = mod, relax.analysis.get_var2val(function)

    def __call__(self, expr: Any) -> bool:
        if isinstance(expr, relax.Var):
            return expr in self._values and self(self._values[expr])
        if isinstance(expr, relax.TupleGetItem):
            return self(expr.tuple_value)
        if isinstance(expr, relax.Tuple):
            return all(self(one) for one in expr.fields)
        if is_call(expr, CALL):
            # Of a reshape TVM makes another look at the same memory.
            return not relax.analysis.has_reshape_pattern(self._mod[expr.args[0]]) or self(expr.args[1])
        return isinstance(expr, tvm.ir.GenericConst)


@tvm.transform.module_pass(opt_level=0, name="SkipMarkedAsserts")
class SkipMarkedAsserts:
    """Leaves the checks out of what `marked` marked."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        marks = {name: function for name, function in mod.functions_items() if MARK in (function.attrs or {})}
        mod.update(tirx.transform.SkipAssert()(tvm.IRModule(marks)))
        return mod
