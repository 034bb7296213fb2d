"""Permutations of axes that follow each other."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import Rewriter, permutation


@tvm.transform.module_pass(opt_level=0, name="ComposePermutations")
class Compose:
    """Two permutations become one, and what is permuted back is read where it was: the layout of convolutions meets that of
    what was written with the channels last. What is permuted for several readers is so once, and has one name."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        once = [
            relax.transform.EliminateCommonSubexpr(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.DeadCodeElimination(),
        ]
        return tvm.transform.Sequential(once)(_Composer(mod).rewritten(mod))


@mutator
class _Composer(Rewriter):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        axes = permutation(call)
        if axes is None:
            return call
        source = call.args[0]
        before = self.lookup_binding(source) if isinstance(source, relax.Var) else None
        inner = permutation(before)
        if before is not None and inner is not None:
            source, axes = before.args[0], [inner[axis] for axis in axes]
        if axes == sorted(axes):
            return source
        return call if inner is None else self.builder_.normalize(relax.op.permute_dims(source, axes))
