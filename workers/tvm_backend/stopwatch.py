"""Timing one program, run by run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import islice
from typing import Protocol

from workers.engine.evaluator.estimate import LONGEST_TIMING, SHORTEST_RUN
from workers.engine.evaluator.timing import timed_runs
from workers.engine.ports import Evaluator
from workers.tvm_backend.arguments import Given
from workers.tvm_backend.handover import Handover

QUICK = 0.01
"""Seconds; a first call that is quicker is made twice, since it also wakes threads and fills caches."""


class Stopwatch:
    """Seconds of single runs. The first is one plain call, so that a hopeless program is run once only.

    Programs shorter than `shortest` seconds are called several times a run. Before each call its tensors are handed over, which
    is not in its seconds, but fills a run: it takes several times as long as the shortest programs.
    """

    def __init__(
        self, entry: Callable[..., None], given: Given, handover: Handover, shortest: float = SHORTEST_RUN
    ) -> None:
        self._entry, self._given, self._handover, self._shortest = entry, given, handover, shortest
        self._number = 0

    def runs(self, count: int) -> list[float]:
        """Seconds of each of `count` runs."""
        if not self._number:
            first, whole = self._first()
            self._number = max(1, math.ceil(self._shortest / max(whole, 1e-7)))
            return [first, *self.runs(count - 1)] if count > 1 else [first]
        return [self._calls(self._number)[0] for _ in range(count)]

    def _first(self) -> tuple[float, float]:
        taken, whole = self._calls(1)
        if taken >= QUICK:
            return taken, whole
        again, whole_again = self._calls(1)
        return min(taken, again), min(whole, whole_again)

    def _calls(self, number: int) -> tuple[float, float]:
        """Seconds a call, without and with the handing over."""
        taken, given = 0.0, list(islice(self._given.calls, number))
        start = time.perf_counter()
        for arguments in given:
            self._handover(self._given.handed)
            began = time.perf_counter()
            self._entry(*arguments)
            taken += time.perf_counter() - began
        return taken / number, (time.perf_counter() - start) / number


class Runs(Protocol):
    """What gives the seconds of each of so many runs."""

    def runs(self, count: int) -> list[float]: ...


def timed(
    stopwatch: Runs, evaluator: Evaluator, incumbent: float | None, longest: float = LONGEST_TIMING
) -> tuple[list[float], str]:
    """Seconds of each run, and why they ended, see `timed_runs`; "late" is after `longest` seconds."""
    end = time.perf_counter() + longest
    return timed_runs(evaluator, incumbent, stopwatch.runs, lambda: end - time.perf_counter())
