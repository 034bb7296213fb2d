"""Weights in the layouts that the operators' programs read, made by programs that are compiled together.

TVM's FoldConstant compiles each such program by itself, checks of its arguments and all: 3 s for the 29 of a SqueezeNet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import Rewriter, is_call, results, static_sizes
from workers.tvm_backend.programs import COMMON_LEFT

QUICKLY = {"kind": "llvm", "opt-level": 1}
"""FoldConstant's target, which has no instruction that rounds otherwise; a program runs once."""
Programs = dict[str, Callable[..., None]]


@tvm.transform.module_pass(opt_level=0, name="Prepack")
class Prepack:
    """What this pass leaves, FoldConstant folds later: what reads another program's result, and all where one does not compile
    for this processor, as a GPU's."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        programs = _compiled(mod, _called(mod))
        return _Packer(mod, programs).rewritten(mod) if programs else mod


def _called(mod: tvm.IRModule) -> list[str]:
    """Programs of calls that read constants alone, each once."""
    found = dict[str, None]()

    def visit(expr: Any) -> None:
        if name := _program(expr):
            found[name] = None

    for _, function in mod.functions_items():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return [name for name in found if isinstance(mod[name], tvm.tirx.PrimFunc)]


def _program(expr: Any) -> str | None:
    """What a call runs on constants alone, for results of known sizes; None for anything else."""
    if not is_call(expr, "relax.call_tir") or len(expr.args) != 2 or not isinstance(expr.args[1], relax.Tuple):
        return None
    read = expr.args[1].fields
    constants = bool(read) and all(isinstance(one, tvm.ir.GenericConst) for one in read)
    known = constants and all(static_sizes(result) is not None for result in results(expr))
    return str(expr.args[0].name_hint) if known else None


def _compiled(mod: tvm.IRModule, names: Sequence[str]) -> Programs:
    """Without checks: TVM made the tensors, and knows their types. Nothing where TVM refuses one."""
    together = tvm.IRModule({name: mod[name].with_attr("global_symbol", name) for name in names})
    try:
        with tvm.transform.PassContext(config={"tirx.disable_assert": True, **COMMON_LEFT}):
            built = tvm.tirx.build(together, target=tvm.target.Target(QUICKLY)) if names else {}
        return {name: built[name] for name in names}  # machine code is made on the first look-up
    except Exception:  # TVM raises whatever its C++ throws
        return {}


@mutator
class _Packer(Rewriter):
    def __init__(self, mod: tvm.IRModule, programs: Programs) -> None:
        super().__init__(mod)
        self._programs = programs

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        program = self._programs.get(_program(call) or "")
        if program is None:
            return super().visit_call_(call)
        made = [tvm.runtime.empty(static_sizes(result), str(result.dtype.dtype)) for result in results(call)]
        program(*(one.value for one in call.args[1].fields), *made)
        packed = [relax.const(one) for one in made]
        return relax.Tuple(packed) if isinstance(call.ty, relax.TupleType) else packed[0]

    def visit_tuple_getitem_(self, one: relax.TupleGetItem) -> relax.Expr:
        """Of what was packed here the tensor itself: else each inference would make the tuple and take it apart."""
        held = self.bound(one.tuple_value)
        packed = isinstance(held, relax.Tuple) and isinstance(held.fields[one.index], tvm.ir.GenericConst)
        return held.fields[one.index] if packed else super().visit_tuple_getitem_(one)
