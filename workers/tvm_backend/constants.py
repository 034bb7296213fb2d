"""Expressions of constants, worked out by numpy before a network is lowered.

TVM's own FoldConstant lowers and compiles a program for every shape it meets: a network whose layers all have other
numbers of channels waits a tenth of a second for each transposed weight and each statistic of a normalisation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import Rewriter, is_call, permutation, static_shape

Array = NDArray[Any]


def _reshaped(call: relax.Call, value: Array) -> Array:
    return value.reshape(static_shape(call))


def _permuted(call: relax.Call, value: Array) -> Array:
    return value.transpose(permutation(call))


def _cast(call: relax.Call, value: Array) -> Array:
    """Between whole numbers alone: others round, and are left as they are."""
    whole = str(call.ty.dtype.dtype)
    return value.astype(whole) if {whole, str(value.dtype)} <= {"int32", "int64"} else value


def _chosen(call: relax.Call, asked: Array, one: Array, other: Array) -> Array:
    found: Array = np.where(asked, one, other)
    return found


def _taken(call: relax.Call, value: Array, places: Array) -> Array:
    """Beyond the end places begin anew, whatever the mode: a right network asks for none there."""
    axis = call.attrs.axis
    return np.take(value, places, None if axis is None else int(axis), mode="wrap")


EVALUATED: dict[str, Callable[..., Array]] = {
    "relax.permute_dims": _permuted,
    "relax.expand_dims": _reshaped,
    "relax.reshape": _reshaped,
    "relax.add": lambda call, one, other: one + other,
    "relax.sqrt": lambda call, value: np.sqrt(value),
    "relax.astype": _cast,
    "relax.less": lambda call, one, other: one < other,
    "relax.where": _chosen,
    "relax.take": _taken,
}
"""What layouts, normalisations and places of an axis ask of constants. IEEE 754 leaves no choice in how these round: the
results are TVM's."""


@tvm.transform.module_pass(opt_level=0, name="FoldWithNumpy")
class Fold:
    """What this pass does not know, FoldConstant folds later."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return _Folder(mod).rewritten(mod)


@mutator
class _Folder(Rewriter):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        evaluate = EVALUATED.get(call.op.name) if isinstance(call.op, tvm.ir.Op) else None
        if evaluate is None or (shape := static_shape(call)) is None:
            return call
        values = [self._value(one) for one in call.args if not isinstance(one, relax.ShapeExpr)]
        if any(value is None for value in values):
            return call
        with np.errstate(all="ignore"):
            result = evaluate(call, *values)
        if (result.shape, str(result.dtype)) != (shape, str(call.ty.dtype.dtype)):
            return call
        folded = tvm.runtime.empty(result.shape, str(result.dtype))
        np.copyto(np.from_dlpack(folded), result)
        return relax.const(folded)

    def _value(self, expr: relax.Expr) -> Array | None:
        """Of a constant, or of a variable that stands for one or for the sizes of a tensor."""
        bound = self.bound(expr)
        if is_call(bound, "relax.shape_to_tensor"):
            sizes = bound.args[0].ty.values
            known = sizes is not None and all(isinstance(size, tvm.tirx.IntImm) for size in sizes)
            return np.asarray([int(size) for size in sizes], np.int64) if known else None
        held = bound.value if isinstance(bound, tvm.ir.GenericConst) else None
        if not isinstance(held, tvm.runtime.Tensor) or str(held.dtype) not in np.sctypeDict:
            return None
        return np.from_dlpack(held)  # no copy: half a gigabyte for one weight of a VGG
