"""Permutations of axes that follow each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.networks.graph import channels_last, channels_second
from workers.tvm_backend.mutation import Rewriter, is_call, is_concatenation, permutation, static_shape

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
        """An operator by number, or a concatenation, with the channels last and put second behind it, where somebody wants them
        last and all that it reads had them there."""
        if self._binding not in self._wanted:
            return call
        second = channels_second(len(call.ty.shape))
        read = [self._source(one, second) for one in _read(call)]
        if is_concatenation(call):
            last = relax.op.concat(read, second[call.attrs.axis])
        elif is_call(call, SLOPED):
            last = relax.op.nn.prelu(*read, call.args[1], second[call.attrs.axis])
        else:
            last = relax.Call(call.op, read, call.attrs, call.ty_args)
        return self.builder_.normalize(relax.op.permute_dims(self.builder_.emit(last), second))

    def _source(self, read: relax.Expr, second: list[int]) -> relax.Expr:
        """What becomes `read` by the permutation `second`, or does for it."""
        found = self.bound(read)
        if permutation(found) == second:
            return found.args[0]
        if not isinstance(read.ty, relax.TensorType) or math.prod(static_shape(read) or ()) == 1:
            return read
        return self.builder_.emit(relax.op.permute_dims(read, channels_last(len(second))))


def _wanted_last(function: relax.Function) -> set[relax.Var]:
    """What is read with its second axis last, by itself or behind what hands permutations on, and can be had so: all that it is
    computed of was put second before."""
    values = [*relax.analysis.get_var2val(function).items()]
    had: set[relax.Var] = set()
    for var, call in values:
        if _puts(call, channels_second) or (_hands_on(call) and _had_last(call, had)):
            had.add(var)
    wanted: set[relax.Var] = set()
    for var, call in reversed(values):
        if _puts(call, channels_last):
            wanted.add(call.args[0])
        elif var in wanted and var in had and _hands_on(call):
            wanted.update(one for one in _read(call) if isinstance(one, relax.Var))
    return {var for var, call in values if var in wanted and var in had and _hands_on(call)}


def _had_last(call: relax.Call, had: set[relax.Var]) -> bool:
    """Whether some of what it reads was put second, or computed of that, and constants can be turned for the rest."""
    shape, read = static_shape(call), _read(call)
    if shape is None or len(shape) < 3 or had.isdisjoint(one for one in read if isinstance(one, relax.Var)):
        return False
    tensors = [one for one in read if isinstance(one.ty, relax.TensorType)]
    shapes = [static_shape(one) if one in had or isinstance(one, tvm.ir.GenericConst) else None for one in tensors]
    return all(one is not None and (math.prod(one) == 1 or len(one) == len(shape)) for one in shapes)


def _hands_on(call: Any) -> bool:
    """Whether what it reads could be permuted behind it as well."""
    return is_concatenation(call) or (
        isinstance(call, relax.Call) and isinstance(call.op, tvm.ir.Op) and call.op.name in BY_NUMBER
    )


def _read(call: relax.Call) -> list[relax.Expr]:
    """What has an axis of channels of what an operator reads that hands permutations on."""
    if is_concatenation(call):
        return list(call.args[0].fields)
    return list(call.args[:1] if is_call(call, SLOPED) else call.args)


def _puts(call: Any, axes: Callable[[int], list[int]]) -> bool:
    """Whether it is a permutation as one of these has it."""
    found = permutation(call)
    return found is not None and len(found) > 2 and found == axes(len(found))
