"""Timing one program, run by run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from workers.engine.evaluator.adaptive import SHORTEST_RUN
from workers.engine.ports import Evaluator

QUICK = 0.01
"""Seconds; a first call that is quicker is made twice, since it also wakes threads and fills caches."""


LONGEST = 8.0
"""Seconds for all runs of one program: 500 runs of a slow one are given up, what they said so far is not."""


class Stopwatch:
    """Seconds of single runs. The first is one plain call, so that a hopeless program is run once only.

    Programs shorter than SHORTEST_RUN are repeated inside one run. Where every call has arguments of its own they are
    called one by one; else TVM's evaluator repeats them, which runs the program once untimed whenever it is asked.
    """

    def __init__(self, program: Any, arguments: Iterator[list[Any]], moving: bool, device: Any) -> None:
        self._program, self._arguments, self._moving, self._device = program, arguments, moving, device
        self._entry = program["main"]
        self._number = 0

    def runs(self, count: int) -> list[float]:
        """Seconds of each of `count` runs."""
        if not self._number:
            first = self._first()
            self._number = max(1, math.ceil(SHORTEST_RUN / max(first, 1e-7)))
            return [first, *self.runs(count - 1)] if count > 1 else [first]
        if self._moving:
            return [self._calls(self._number) for _ in range(count)]
        evaluate = self._program.time_evaluator(
            "main", self._device, number=self._number, repeat=count, min_repeat_ms=0
        )
        return [float(seconds) for seconds in evaluate(*next(self._arguments)).results]

    def _first(self) -> float:
        taken = self._calls(1)
        return min(taken, self._calls(1)) if taken < QUICK else taken

    def _calls(self, number: int) -> float:
        """Seconds a call."""
        given = list(islice(self._arguments, number))
        began = time.perf_counter()
        for arguments in given:
            self._entry(*arguments)
        return (time.perf_counter() - began) / number


def timed(
    stopwatch: Stopwatch, evaluator: Evaluator, incumbent: float | None, longest: float = LONGEST
) -> tuple[list[float], str]:
    """Seconds of each run, and why they ended: the evaluator's verdict, or "late" after `longest` seconds."""
    times: list[float] = []
    end = time.perf_counter() + longest
    while (wanted := evaluator.more(times, incumbent)) > 0:
        left = end - time.perf_counter()
        if times and left <= 0:
            return times, "late"
        fits = int(left / max(times[-1], SHORTEST_RUN)) if times else 1
        times.extend(stopwatch.runs(max(1, min(wanted, fits))))
    return times, evaluator.verdict(times, incumbent)
