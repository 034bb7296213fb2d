"""The clock that a run's events and accounts are told by."""

from __future__ import annotations

import time
from collections.abc import Callable


class RunClock:
    """Tuning time in seconds: counts on from what earlier attempts took, but stands until `go` where there were any. What
    it takes to be back where the last one was belongs to the pause, or to what broke off: a short run would be used up by it.
    """

    def __init__(self, already: float, awake: Callable[[], float] = time.monotonic) -> None:
        """`awake` never stands."""
        self.awake = awake
        self._already = already
        self._began = None if already else awake()

    def now(self) -> float:
        return self._already + (0.0 if self._began is None else self.awake() - self._began)

    def go(self) -> None:
        if self._began is None:
            self._began = self.awake()
