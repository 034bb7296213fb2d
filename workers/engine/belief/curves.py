"""Curve families of DynaTune 4.3: increasing functions of the number of configurations that saturate.

A new family is one class and one line in `CURVES`. x is positive (configurations within a segment, from 1), values are
speeds normalised by the target's peak.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

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
        """Members (n, p) whose values are `factor` (n,) times those of `theta` (n, p)."""
        ...

    def flat(self, level: float) -> Array:
        """Member (p,) that is `level` everywhere (to about 1e-6)."""
        ...

    def relative(self, theta: Array, best: float) -> Array:
        """`theta` (n, p) in coordinates that keep their meaning when a new segment starts at another level."""
        ...

    def broad(self) -> tuple[Array, Array]:
        """Mean and spread (p,) of a broad belief in `relative` coordinates, for operators nothing is known of."""
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

    def broad(self) -> tuple[Array, Array]:
        """Ceiling 1.5 times the best within a factor of about 2; half of it after some 1 to 100 configurations."""
        return np.array([math.log(1.5), 2.0, 1.0]), np.array([0.7, 2.5, 1.0])


CURVES: dict[str, Curve] = {curve.name: curve for curve in (LogPower(),)}


def curve_named(name: str) -> Curve:
    """The registered family of that name; raises UnknownPart."""
    if name not in CURVES:
        raise UnknownPart(f"curve {name!r} is not registered; choose one of {', '.join(sorted(CURVES))}")
    return CURVES[name]
