"""Resized images as they lie, and their transposition apart from that."""

from __future__ import annotations

import tvm
from tvm import relax, topi
from tvm.relax.expr_functor import mutator

from workers.tvm_backend.mutation import OPAQUE, Rewriter, is_call, permutation, static_shape

RESIZED = "relax.image.resize2d"
ALONG = frozenset(f"relax.{name}" for name in "nn.relu sigmoid tanh multiply add subtract divide".split())
"""What is computed of each pixel where it is made."""
NARROWEST = 8
"""Channels of an image that has them last: fewer are no vector worth it."""


@tvm.transform.module_pass(opt_level=0, name="TransposedBehindResize")
class Apart:
    """What resizes an image with its channels last takes vectors of these. As part of it a transposition has it write pixel by
    pixel, each from places of its own: eight to twelve times as long."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        return _Apart(mod).rewritten(mod)


@mutator
class _Apart(Rewriter):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        axes = permutation(call)
        if axes is None:
            return call
        image, shape = self.bound(call.args[0]), static_shape(call.args[0])
        while isinstance(image, relax.Call) and isinstance(image.op, tvm.ir.Op) and image.op.name in ALONG:
            image = self.bound(image.args[0])
        if not is_call(image, RESIZED) or image.attrs.layout != "NHWC":
            return call
        if shape is None or shape[-1] < NARROWEST or axes[-1] == len(shape) - 1:
            return call
        return self.computed(lambda image: topi.transpose(image, axes), "transpose", call.args[0], pattern=OPAQUE)
