"""Convolutions of a network replaced by transform, product and transform."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import FUSABLE, OPAQUE, Rewriter, constant, is_call
from workers.tvm_backend.winograd import schedules
from workers.tvm_backend.winograd.filtering import KERNEL, SINGLES, Arithmetic, Convolution, chosen, weights_transformed
from workers.tvm_backend.winograd.transform import Transform


def transformed(mod: tvm.IRModule, lanes: int, balance: float) -> tuple[tvm.IRModule, int]:
    """`mod`, in NHWC and before it is lowered, with the convolutions that are worth it rewritten; and how many were."""
    rewriter = _Rewriter(mod, lanes, balance)
    return rewriter.rewritten(mod), rewriter.count


@mutator
class _Rewriter(Rewriter):
    def __init__(self, mod: tvm.IRModule, lanes: int, balance: float) -> None:
        super().__init__(mod)
        self._lanes, self._balance = lanes, balance
        self.count = 0

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        if not is_call(call, "relax.nn.conv2d"):
            return call
        convolution, weights = convolution_of(call), constant(call.args[1], self.bound)
        if convolution is None or weights is None:
            return call
        filtering = chosen(convolution, self._lanes, self._balance)
        if filtering is None:
            return call
        self.count += 1
        transform = Transform(convolution, filtering, self._lanes)
        data = self.builder_.emit_te(
            transform.input,
            call.args[0],
            primfunc_name_hint=schedules.INPUT,
            primfunc_attrs={"op_pattern": OPAQUE},
        )
        product = self.builder_.emit(relax.op.matmul(data, relax.const(weights_transformed(weights, filtering))))
        return self.builder_.call_te(
            transform.output,
            product,
            primfunc_name_hint=schedules.OUTPUT,
            primfunc_attrs={"op_pattern": FUSABLE},
        )


def convolution_of(call: relax.Call, arithmetic: Arithmetic = SINGLES) -> Convolution | None:
    """What a call computes when it can be transformed: float32 outside, NHWC, 3 x 3, stride and dilation 1, one group."""
    attributes, (data, kernel) = call.attrs, (argument.ty for argument in call.args)
    fits = (
        str(attributes.data_layout) == "NHWC"
        and str(attributes.kernel_layout) == "HWIO"
        and [int(n) for n in (*attributes.strides, *attributes.dilation, attributes.groups)] == [1] * 5
        and data.dtype.dtype == kernel.dtype.dtype == "float32"
        and isinstance(data.shape, relax.ShapeExpr)
        and isinstance(kernel.shape, relax.ShapeExpr)
    )
    if not fits:
        return None
    (batch, height, width, channels), (high, wide, _, filters) = (
        tuple(int(n) for n in shape.values) for shape in (data.shape, kernel.shape)
    )
    if (high, wide) != (KERNEL, KERNEL):
        return None
    top, left, bottom, right = (int(n) for n in attributes.padding)
    return Convolution(batch, height, width, channels, filters, (top, left, bottom, right), arithmetic)
