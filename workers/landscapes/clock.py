"""A clock that moves only when somebody charges it."""

from __future__ import annotations

import math


class SimulatedClock:
    """Tuning time in seconds, charged by a landscape; counts on from `already`."""

    def __init__(self, already: float = 0.0) -> None:
        self._now = already

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass; ValueError for time that is negative or not finite."""
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(f"a clock cannot advance by {seconds} s; charge a finite time of at least 0")
        self._now += seconds
