"""Convolutions of a network replaced by transform, product and transform."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import OPAQUE, Rewriter, constant, is_call, static_shape
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
        convolution = convolution_of(call)
        weights = None if convolution is None else constant(call.args[1], self.bound)
        if convolution is None or weights is None:
            return call
        filtering = chosen(convolution, self._lanes, self._balance)
        if filtering is None:
            return call
        self.count += 1
        transform = Transform(convolution, filtering, self._lanes)
        data = self.builder_.emit(self.computed(transform.input, schedules.INPUT, call.args[0], pattern=OPAQUE))
        product = self.builder_.emit(relax.op.matmul(data, relax.const(weights_transformed(weights, filtering))))
        return self.computed(transform.output, schedules.OUTPUT, product)


def convolution_of(call: relax.Call, arithmetic: Arithmetic = SINGLES) -> Convolution | None:
    """What a call computes when it can be transformed: float32 outside, NHWC, 3 x 3, stride and dilation 1, one group."""
    if not is_call(call, "relax.nn.conv2d"):
        return None
    attributes, (data, kernel) = call.attrs, (static_shape(argument) for argument in call.args)
    fits = (
        str(attributes.data_layout) == "NHWC"
        and str(attributes.kernel_layout) == "HWIO"
        and [int(n) for n in (*attributes.strides, *attributes.dilation, attributes.groups)] == [1] * 5
        and all(argument.ty.dtype.dtype == "float32" for argument in call.args)
    )
    if not fits or data is None or kernel is None or kernel[:2] != (KERNEL, KERNEL):
        return None
    top, left, bottom, right = (int(n) for n in attributes.padding)
    batch, height, width, channels = data
    return Convolution(batch, height, width, channels, kernel[-1], (top, left, bottom, right), arithmetic)
