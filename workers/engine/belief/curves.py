"""Curve families of DynaTune 4.3: increasing functions of the number of configurations with a diminishing return.

A new family is one class and one line in `CURVES`. x is positive (configurations within a segment, from 1), values are
speeds normalised by the target's peak.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workers.engine.errors import UnknownPart

Array = NDArray[np.float64]


class Curve(Protocol):
    """A family of curves with p parameters; every member must not decrease in x. Stateless."""

    name: str
    parameters: tuple[str, ...]
    lower: Array
    upper: Array

    def __call__(self, theta: Array, x: Array) -> Array:
        """Values of n members `theta` (n, p) at `x` (m,), as (n, m)."""
        ...

    def start(self, x: Array, y: Array) -> Array:
        """A first guess (p,) for non-linear least squares through points (m,)."""
        ...

    def lift(self, theta: Array, factor: Array) -> Array:
        """Members (n, p) whose values are `factor` (n,), at least 1, times those of `theta` (n, p), or just above."""
        ...

    def flat(self, level: float) -> Array:
        """Member (p,) that is `level` everywhere (to about 1e-6)."""
        ...

    def relative(self, theta: Array, best: float) -> Array:
        """`theta` (n, p) in coordinates (n, q) that keep their meaning when a new segment starts at another level."""
        ...

    def stretch(self, theta: Array) -> Array:
        """ln of the volume in `relative` coordinates of a unit of volume at each of `theta` (n, p), as (n,): a density there
        is that many times higher here."""
        ...

    def broad(self) -> tuple[Array, Array]:
        """Mean and spread (q,) of a broad belief in `relative` coordinates, for operators nothing is known of."""
        ...


class LogPower:
    """a / (1 + (x / e^b)^c) with c < 0, written with the positive exponent: a / (1 + (x / e^b)^-c), c > 0.

    That is a logistic curve in ln x, increasing to its ceiling a. DynaTune 4.3 found it to work best and restricts
    0 < a <= 1. The limits of b and c only make the uniform prior proper.
    """

    name = "log_power"
    parameters: tuple[str, ...] = ("a", "b", "c")
    lower: Array = np.array([1e-9, -10.0, 1e-3])
    upper: Array = np.array([1.0, 20.0, 6.0])

    def __call__(self, theta: Array, x: Array) -> Array:
        """See `Curve`."""
        from scipy.special import expit

        a, b, c = theta[:, 0, None], theta[:, 1, None], theta[:, 2, None]
        values: Array = a * expit(c * (np.log(x) - b))
        return values

    def start(self, x: Array, y: Array) -> Array:
        """A ceiling a little above the last point; the logistic through the first point with slope 1."""
        ceiling = min(1.0, 1.1 * float(y[-1]))
        share = min(max(float(y[0]) / ceiling, 1e-3), 1 - 1e-3)
        return np.array([ceiling, -math.log(share / (1 - share)), 1.0])

    def lift(self, theta: Array, factor: Array) -> Array:
        """See `Curve`."""
        return np.stack([theta[:, 0] * factor, theta[:, 1], theta[:, 2]], axis=1)

    def flat(self, level: float) -> Array:
        """See `Curve`."""
        return np.array([level, -8.0, 2.0])

    def relative(self, theta: Array, best: float) -> Array:
        """(ln(a / best), b, c): the head room over the best carries over to the next segment, the level does not."""
        return np.stack([np.log(theta[:, 0] / best), theta[:, 1], theta[:, 2]], axis=1)

    def stretch(self, theta: Array) -> Array:
        """See `Curve`."""
        return -np.log(theta[:, 0])

    def broad(self) -> tuple[Array, Array]:
        """Ceiling 1.5 times the best within a factor of about 2; half of it after some 1 to 100 configurations."""
        return np.array([math.log(1.5), 2.0, 1.0]), np.array([0.7, 2.5, 1.0])


class Pow2:
    """a x^b with 0 <= b <= 1: a power law without a ceiling of its own (DynaTune 4.3; its program writes a x^-alpha).

    The peak, 1, is its ceiling: the prior forbids more at the end of the next slot, and forecasts are cut there.
    """

    name = "pow2"
    parameters: tuple[str, ...] = ("a", "b")
    lower: Array = np.array([1e-9, 0.0])
    upper: Array = np.array([1.0, 1.0])

    def __call__(self, theta: Array, x: Array) -> Array:
        """See `Curve`."""
        values: Array = theta[:, 0, None] * x ** theta[:, 1, None]
        return values

    def start(self, x: Array, y: Array) -> Array:
        """Through the first and the last point."""
        return np.array([y[0], _rise(x, float(np.log(y[-1] / y[0])))])

    def lift(self, theta: Array, factor: Array) -> Array:
        """See `Curve`."""
        return np.stack([theta[:, 0] * factor, theta[:, 1]], axis=1)

    def flat(self, level: float) -> Array:
        """See `Curve`."""
        return np.array([level, 0.0])

    def relative(self, theta: Array, best: float) -> Array:
        """(b,): the next segment rises as this one did, from wherever it starts."""
        return theta[:, 1:]

    def stretch(self, theta: Array) -> Array:
        """See `Curve`: the same everywhere."""
        return np.zeros(len(theta))

    def broad(self) -> tuple[Array, Array]:
        """Ten times as many configurations are 1.3 times faster, or 1 to 2 times."""
        return np.array([0.1]), np.array([0.15])


class Pow4:
    """c - (a x + b)^-alpha, in the coordinates c (1 - g ((x + s) / (1 + s))^-alpha) with u = ln(1 + s).

    The same curves where a > 0 and b >= 0, but with a ceiling c, a gap g at the first configuration and a shift s >= 0
    that keep one size each; a and b of DynaTune's program run over many orders of magnitude, which least squares
    does not survive.
    """

    name = "pow4"
    parameters: tuple[str, ...] = ("c", "g", "u", "alpha")
    lower: Array = np.array([1e-9, 0.0, 0.0, 1e-3])
    upper: Array = np.array([1.0, 1.0, 8.0, 6.0])

    def __call__(self, theta: Array, x: Array) -> Array:
        """See `Curve`."""
        c, g, u, alpha = (theta[:, i, None] for i in range(4))
        shift = np.expm1(u)
        values: Array = c * (1 - g * np.exp(alpha * (u - np.log(x + shift))))
        return values

    def start(self, x: Array, y: Array) -> Array:
        """A ceiling a little above the last point, the gap of the first, a shift and an exponent of a half."""
        ceiling = min(1.0, 1.1 * float(y[-1]))
        return np.array([ceiling, 1 - float(y[0]) / ceiling, 0.5, 0.5])

    def lift(self, theta: Array, factor: Array) -> Array:
        """See `Curve`."""
        return np.concatenate([theta[:, :1] * factor[:, None], theta[:, 1:]], axis=1)

    def flat(self, level: float) -> Array:
        """See `Curve`."""
        return np.array([level, 0.0, 1.0, 1.0])

    def relative(self, theta: Array, best: float) -> Array:
        """(ln(c / best), g, u, alpha)."""
        return np.concatenate([np.log(theta[:, :1] / best), theta[:, 1:]], axis=1)

    def stretch(self, theta: Array) -> Array:
        """See `Curve`."""
        return -np.log(theta[:, 0])

    def broad(self) -> tuple[Array, Array]:
        """The head room of `LogPower`, a third of it missing at first, any shift and exponent."""
        return np.array([math.log(1.5), 0.35, 2.0, 1.0]), np.array([0.7, 0.3, 2.0, 1.0])


class LogLinear:
    """a ln x + b with a >= 0 (DynaTune 4.3): every doubling adds as much; without a ceiling of its own (see `Pow2`)."""

    name = "log_linear"
    parameters: tuple[str, ...] = ("a", "b")
    lower: Array = np.array([0.0, 1e-9])
    upper: Array = np.array([1.0, 1.0])

    def __call__(self, theta: Array, x: Array) -> Array:
        """See `Curve`."""
        values: Array = theta[:, 0, None] * np.log(x) + theta[:, 1, None]
        return values

    def start(self, x: Array, y: Array) -> Array:
        """Through the first and the last point."""
        return np.array([_rise(x, float(y[-1] - y[0])), y[0]])

    def lift(self, theta: Array, factor: Array) -> Array:
        """See `Curve`."""
        return theta * factor[:, None]

    def flat(self, level: float) -> Array:
        """See `Curve`."""
        return np.array([0.0, level])

    def relative(self, theta: Array, best: float) -> Array:
        """(a / best,): the slope, as a share of the speed."""
        return theta[:, :1] / best

    def stretch(self, theta: Array) -> Array:
        """See `Curve`: the same everywhere."""
        return np.zeros(len(theta))

    def broad(self) -> tuple[Array, Array]:
        """A doubling adds 7 % of the speed, or up to some 20 %."""
        return np.array([0.1]), np.array([0.15])


class LogLogLinear:
    """ln(a ln x + b) with a >= 0 and b >= 1 (DynaTune 4.3): it flattens where `LogLinear` goes on."""

    name = "log_log_linear"
    parameters: tuple[str, ...] = ("a", "b")
    lower: Array = np.array([0.0, 1.0 + 1e-9])
    upper: Array = np.array([4.0, math.e])

    def __call__(self, theta: Array, x: Array) -> Array:
        """See `Curve`."""
        values: Array = np.log1p(theta[:, 0, None] * np.log(x) + (theta[:, 1, None] - 1))
        return values

    def start(self, x: Array, y: Array) -> Array:
        """Through the first and the last point."""
        return np.array([_rise(x, float(np.expm1(y[-1]) - np.expm1(y[0]))), np.exp(y[0])])

    def lift(self, theta: Array, factor: Array) -> Array:
        """At least `factor` times: (1 + z)^f <= 1 + z (e^f - 1) / (e - 1) for 0 <= z <= e - 1, the secant."""
        scale = np.expm1(np.minimum(factor, 30.0)) / math.expm1(1.0)
        return np.stack([theta[:, 0] * scale, 1 + (theta[:, 1] - 1) * scale], axis=1)

    def flat(self, level: float) -> Array:
        """See `Curve`."""
        return np.array([0.0, math.exp(level)])

    def relative(self, theta: Array, best: float) -> Array:
        """(a / (e^best - 1),): the slope within the logarithm, as a share of what is reached there."""
        return theta[:, :1] / math.expm1(best)

    def stretch(self, theta: Array) -> Array:
        """See `Curve`: the same everywhere."""
        return np.zeros(len(theta))

    def broad(self) -> tuple[Array, Array]:
        """As for `LogLinear`, which it is for small speeds."""
        return np.array([0.1]), np.array([0.15])


CURVES: dict[str, Curve] = {curve.name: curve for curve in (LogPower(), Pow2(), Pow4(), LogLinear(), LogLogLinear())}


def curve_named(name: str) -> Curve:
    """The registered family of that name; raises UnknownPart."""
    if name not in CURVES:
        raise UnknownPart(f"curve {name!r} is not registered; choose one of {', '.join(sorted(CURVES))}")
    return CURVES[name]


def _rise(x: Array, by: float) -> float:
    """Slope in ln x that gains `by` between the first and the last point; 0 for a single one."""
    return by / math.log(x[-1] / x[0]) if x[-1] > x[0] else 0.0
