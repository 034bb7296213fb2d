"""Pieces of a best-so-far curve between jumps (DynaTune 4.3: more than 20 % faster starts a new one)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Points of one segment: x (m,) counts configurations in it from 1, y (m,) speeds, `weights` (m,) configurations a
    point stands for. `length` is the number of configurations, whatever was left out."""

    x: Array
    y: Array
    weights: Array
    length: int


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


def points(speeds: Array, start: int, limit: int | None) -> Points:
    """The segment of `speeds` from `start` to the end, thinned to about `limit` points (None: all).

    A best-so-far curve is a staircase, so its information is where the steps are: the configurations on both sides of a
    step and a few spaced ones in between; each stands for the configurations since the point before it.
    """
    y = speeds[start:]
    n = len(y)
    if limit is None or n <= limit:
        return Points(np.arange(1.0, n + 1), y, np.ones(n), n)
    steps = np.flatnonzero(np.diff(y) > 0) + 1
    corners = np.concatenate([steps - 1, steps])
    if len(corners) > limit // 2:
        corners = corners[np.linspace(0, len(corners) - 1, limit // 2).astype(np.int64)]
    # Even in ln x, where the curve families bend evenly.
    spaced = np.geomspace(1, n, limit - len(corners)).astype(np.int64) - 1
    kept = np.unique(np.concatenate([corners, spaced, [0, n - 1]]))
    return Points(kept + 1.0, y[kept], np.diff(kept, prepend=-1).astype(np.float64), n)
