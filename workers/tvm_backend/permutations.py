"""Permutations of axes that follow each other."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import Rewriter, is_concatenation, permutation, static_shape

SLOPED = "relax.nn.prelu"
BY_NUMBER = frozenset(
    f"relax.{name}"
    for name in "abs add astype ceil clip divide erf exp floor log maximum minimum multiply negative nn.gelu nn.leakyrelu "
    "nn.prelu nn.relu nn.silu power round rsqrt sigmoid sqrt subtract tanh where".split()
)
"""Operators each number of whose result is of the numbers at its place."""


@tvm.transform.module_pass(opt_level=0, name="ComposePermutations")
class Compose:
    """Two permutations become one, and what is permuted back is read where it was: the layout of convolutions meets that of
    what was written with the channels last, behind operators by number too. What is permuted for several readers is so once,
    and has one name."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        once = [
            relax.transform.EliminateCommonSubexpr(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.DeadCodeElimination(),
        ]
        return tvm.transform.Sequential(once)(_Composer(mod).rewritten(mod))


@mutator
class _Composer(Rewriter):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self._wanted: set[relax.Var] = set()
        self._binding: relax.Var | None = None

    def visit_function_(self, function: relax.Function) -> relax.Expr:
        self._wanted = _wanted_last(function)
        return super().visit_function_(function)

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        self._binding = binding.var
        super().visit_var_binding_(binding)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        axes = permutation(call)
        if axes is None:
            return self._channels_last(call)
        source = call.args[0]
        before = self.lookup_binding(source) if isinstance(source, relax.Var) else None
        inner = permutation(before)
        if before is not None and inner is not None:
            source, axes = before.args[0], [inner[axis] for axis in axes]
        if axes == sorted(axes):
            return source
        return call if inner is None else self.builder_.normalize(relax.op.permute_dims(source, axes))

    def _channels_last(self, call: relax.Call) -> relax.Expr:
        """An operator by number, or a concatenation, with the channels last, where somebody wants them there and all that it
        reads had them there before they were put second."""
        shape, joined = static_shape(call), is_concatenation(call)
        if self._binding not in self._wanted or shape is None or not _hands_on(call):
            return call
        read = call.args[0].fields if joined else call.args[:1] if _name(call) == SLOPED else call.args
        second = [0, len(shape) - 1, *range(1, len(shape) - 1)]
        sources = [self._source(one, second) for one in read]
        if None in sources or all(one is known for one, known in zip(sources, read, strict=True)):
            return call
        if joined:
            last = relax.op.concat(sources, second[call.attrs.axis])
        elif _name(call) == SLOPED:
            last = relax.op.nn.prelu(sources[0], call.args[1], second[call.attrs.axis])
        else:
            last = relax.Call(call.op, sources, call.attrs, call.ty_args)
        return self.builder_.normalize(relax.op.permute_dims(self.builder_.emit(last), second))

    def _source(self, read: relax.Expr, second: list[int]) -> relax.Expr | None:
        """What becomes `read` by the permutation `second`, or does for it; None where there is nothing."""
        found = self.bound(read)
        if permutation(found) == second:
            return found.args[0]
        if not isinstance(read.ty, relax.TensorType):
            return read
        shape = static_shape(read)
        if shape is None or not isinstance(found, tvm.ir.GenericConst):
            return None
        if math.prod(shape) == 1:
            return read
        return self.builder_.emit(relax.op.permute_dims(read, _last(len(shape)))) if len(shape) == len(second) else None


def _wanted_last(function: relax.Function) -> set[relax.Var]:
    """What is read with its second axis last, by itself or behind what hands permutations on."""
    wanted: set[relax.Var] = set()
    for var, call in reversed([*relax.analysis.get_var2val(function).items()]):
        axes = permutation(call)
        if axes is not None and len(axes) > 2 and axes == _last(len(axes)):
            wanted.add(call.args[0])
        elif var in wanted and _hands_on(call):
            read = call.args[0].fields if is_concatenation(call) else call.args
            wanted.update(one for one in read if isinstance(one, relax.Var))
    return wanted


def _hands_on(call: Any) -> bool:
    """Whether what it reads could be permuted behind it as well."""
    return is_concatenation(call) or (isinstance(call, relax.Call) and _name(call) in BY_NUMBER)


def _last(rank: int) -> list[int]:
    """Puts the second axis last."""
    return [0, *range(2, rank), 1]


def _name(call: relax.Call) -> str | None:
    return call.op.name if isinstance(call.op, tvm.ir.Op) else None
