"""Pieces of a best-so-far curve between jumps (DynaTune 4.3: more than 20 % faster starts a new one)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Points of one segment: x (m,) counts configurations in it from 1, y (m,) speeds, `weights` (m,) configurations a
    point stands for."""

    x: Array
    y: Array
    weights: Array


JUMP = 0.2
"""How much faster the best becomes where a new segment starts."""


def cuts(speeds: Array) -> list[int]:
    """Where segments of `speeds` (n,), best so far, 0 before the first valid one, start; [] without a valid one."""
    valid = np.flatnonzero(speeds > 0)
    if not len(valid):
        return []
    first = int(valid[0])
    tail = speeds[first:]
    jumps = np.flatnonzero(tail[1:] > (1 + JUMP) * tail[:-1]) + 1
    return [first, *(first + int(i) for i in jumps)]


def points(speeds: Array, start: int, each: int | None) -> Points:
    """The segment of `speeds` from `start` to the end, at most `each` points a plateau in every factor e of configurations
    (None: each configuration is one).

    A best-so-far curve is a staircase, and the curve families bend evenly in ln x: on a piece of a plateau that is short there
    they are straight, and a point in its middle stands for all of its configurations.
    """
    y = speeds[start:]
    n = len(y)
    x = np.arange(1.0, n + 1)
    if each is None:
        return Points(x, y, np.ones(n))
    places = np.log(x)
    apart = (np.diff(y) > 0) | (np.diff(np.floor(each * places)) > 0)
    first = np.flatnonzero(np.append(True, apart))
    weights = np.diff(np.append(first, n)).astype(np.float64)
    return Points(np.exp(np.add.reduceat(places, first) / weights), y[first], weights)
