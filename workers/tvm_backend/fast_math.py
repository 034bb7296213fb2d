"""Activations as polynomials, exact to some units in the last place: the C library computes them number by number.

relax's FastMathTransform replaces exp, erf, tanh and softmax where they stand alone; these hold one of them within.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import relax, te, tirx, topi


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


LEGALIZED = {
    "relax.sigmoid": _lowering(_sigmoid),
    "relax.nn.silu": _lowering(_silu),
    "relax.nn.gelu": _lowering(_gelu),
    "relax.nn.gelu_tanh": _lowering(_gelu_tanh),
}
"""For `relax.transform.LegalizeOps`, by operator."""
