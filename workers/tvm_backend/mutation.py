"""What all rewritings of a network need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import tvm
from numpy.typing import NDArray
from tvm import relax
from tvm.relax.expr_functor import PyExprMutator

PERMUTED = "relax.permute_dims"
OPAQUE, FUSABLE = 8, 4
"""TVM's kinds of operators: fused with nothing; with elementwise ones after it."""


class Rewriter(PyExprMutator):  # type: ignore[misc]
    """A mutator over all functions of a module, before it is lowered."""

    def rewritten(self, mod: tvm.IRModule) -> tvm.IRModule:
        """`mod` with its functions as they are visited."""
        for name, function in mod.functions_items():
            if isinstance(function, relax.Function):
                self.builder_.update_func(name, self.visit_expr(function))
        return self.builder_.finalize()

    def computed(self, sums: Callable[..., Any], name: str, *read: relax.Expr, pattern: int = FUSABLE) -> relax.Call:
        """A call of an operator that a tensor expression writes out."""
        return self.builder_.call_te(sums, *read, primfunc_name_hint=name, primfunc_attrs={"op_pattern": pattern})

    def bound(self, expr: Any) -> Any:
        """What a variable stands for; any other expression itself, and an input of the network."""
        found = self.lookup_binding(expr) if isinstance(expr, relax.Var) else None
        return expr if found is None else found


def constant(expr: Any, bound: Callable[[Any], Any]) -> NDArray[Any] | None:
    """The value of a constant that the layout conversion may have turned; `bound` says what a variable stands for."""
    expr = bound(expr)
    axes = permutation(expr)
    if axes is not None:
        expr = bound(expr.args[0])
    if not isinstance(expr, tvm.ir.GenericConst):
        return None
    value: NDArray[Any] = expr.value.numpy()
    return value.transpose(axes) if axes is not None else value


def permutation(expr: Any) -> list[int] | None:
    """Axes of a permutation, None for anything else."""
    if not is_call(expr, PERMUTED):
        return None
    axes = expr.attrs.axes
    return list(range(len(expr.args[0].ty.shape)))[::-1] if axes is None else [int(axis) for axis in axes]


def is_call(expr: Any, name: str) -> bool:
    """Whether an expression calls TVM's operator of that name."""
    return isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op) and expr.op.name == name


def is_concatenation(expr: Any) -> bool:
    """Whether an expression concatenates tensors that it names, along an axis."""
    return is_call(expr, "relax.concat") and isinstance(expr.args[0], relax.Tuple) and expr.attrs.axis is not None


def results(call: relax.Call) -> list[relax.Type]:
    """Types of what it makes, which may be several tensors."""
    return list(call.ty.fields) if isinstance(call.ty, relax.TupleType) else [call.ty]


def static_shape(expr: Any) -> tuple[int, ...] | None:
    """Of a tensor whose sizes are all known."""
    return static_sizes(expr.ty)


def static_sizes(kind: Any) -> tuple[int, ...] | None:
    """The same of its type."""
    shape = kind.shape if isinstance(kind, relax.TensorType) else None
    if not isinstance(shape, relax.ShapeExpr) or not all(isinstance(n, tvm.tirx.IntImm) for n in shape.values):
        return None
    return tuple(int(n) for n in shape.values)


def type_bytes(kind: Any) -> int:
    """Of a tensor; 0 where its sizes are not known, or it is none."""
    sizes = static_sizes(kind)
    return 0 if sizes is None else tensor_bytes(sizes, str(kind.dtype.dtype))


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    return math.prod(shape) * int(tvm.DataType(dtype).bits) // 8
