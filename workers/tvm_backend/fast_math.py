"""Activations as polynomials and powers as roots, exact to some units in the last place: the C library computes them number
by number.

relax's FastMathTransform replaces exp, erf, tanh and softmax where they stand alone; the activations here hold one of them
within.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx, topi

MOST = 4
"""Of an exponent that is written out."""


def _sigmoid(x: te.Tensor) -> te.Tensor:
    # Not by tanh: far below zero that would leave no digit of a small result.
    one = tirx.const(1, x.dtype)
    return topi.divide(one, topi.add(one, topi.fast_exp(topi.negative(x))))


def _silu(x: te.Tensor) -> te.Tensor:
    return topi.multiply(x, _sigmoid(x))


def _gelu(x: te.Tensor) -> te.Tensor:
    return _halved(x, topi.fast_erf(topi.multiply(x, tirx.const(math.sqrt(0.5), x.dtype))))


def _gelu_tanh(x: te.Tensor) -> te.Tensor:
    """Hendrycks & Gimpel 2016, section 2: with x + 0.044715 x^3."""
    scaled = topi.multiply(x, tirx.const(math.sqrt(2 / math.pi), x.dtype))
    cubic = topi.add(topi.multiply(topi.multiply(x, x), tirx.const(0.044715, x.dtype)), tirx.const(1, x.dtype))
    return _halved(x, topi.fast_tanh(topi.multiply(scaled, cubic)))


def _halved(x: te.Tensor, share: te.Tensor) -> te.Tensor:
    half = tirx.const(0.5, x.dtype)
    return topi.multiply(x, topi.add(topi.multiply(share, half), half))


def _lowering(compute: Callable[[te.Tensor], te.Tensor]) -> Callable[[relax.BlockBuilder, relax.Call], Any]:
    name = compute.__name__.strip("_")
    return lambda builder, call: builder.call_te(compute, call.args[0], primfunc_name_hint=name)


def _power(builder: relax.BlockBuilder, call: relax.Call) -> Any:
    """A local response normalisation's power of 0.75 was a fifth of a GoogLeNet."""
    base, exponent = call.args
    quarters = _quarters(exponent, len(base.ty.shape)) if str(base.ty.dtype.dtype) == "float32" else None
    if quarters is None:
        return call.op.get_attr("FLegalize")(builder, call)
    return builder.call_te(_rooted, base, quarters, primfunc_name_hint="power")


def _quarters(exponent: relax.Expr, axes: int) -> int | None:
    """How many a constant exponent has, where it has so many exactly, is none of 0 and beyond MOST, and leaves a base of so
    many `axes` its shape."""
    value = exponent.value if isinstance(exponent, tvm.ir.GenericConst) else None
    if not isinstance(value, tvm.runtime.Tensor) or math.prod(value.shape) != 1 or len(value.shape) > axes:
        return None
    quarters = 4 * float(np.asarray(value.numpy()).item())
    return int(quarters) if quarters.is_integer() and 0 < abs(quarters) <= 4 * MOST else None


def _rooted(x: te.Tensor, quarters: int) -> te.Tensor:
    """x to the power of quarters / 4; of -0 and minus infinity it is what their roots are, not as pow has it."""
    whole, rest = divmod(abs(quarters), 4)

    def raised(*place: Any) -> Any:
        value = x[place]
        root = tirx.sqrt(value)
        factors = [value] * whole + [root] * (rest >= 2) + [tirx.sqrt(root)] * (rest % 2)
        product = math.prod(factors[1:], start=factors[0])
        return product if quarters > 0 else tirx.const(1, x.dtype) / product

    return te.compute(x.shape, raised, name="power")


LEGALIZED = {
    "relax.power": _power,
    "relax.sigmoid": _lowering(_sigmoid),
    "relax.nn.silu": _lowering(_silu),
    "relax.nn.gelu": _lowering(_gelu),
    "relax.nn.gelu_tanh": _lowering(_gelu_tanh),
}
"""For `relax.transform.LegalizeOps`, by operator."""
