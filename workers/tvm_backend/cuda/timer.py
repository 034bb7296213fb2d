"""Times programs on a GPU, by the GPU's own clock."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import tvm

from workers.engine.evaluator.estimate import LONGEST_TIMING
from workers.tvm_backend.arguments import Arguments, AtRest, Footprint
from workers.tvm_backend.stopwatch import QUICK, timed
from workers.tvm_backend.timer import Entry, Timer

MOST_CALLS = 100
"""A run: the shortest kernels take microseconds."""
AWAKE = 0.05
"""Seconds without work after which a GPU may have slowed down its clock, and as many of work until it is fast again."""


class CudaTimer(Timer):
    """Of the first GPU."""

    def __init__(self) -> None:
        self._kept = {}
        self._device = tvm.cuda(0)
        self._rests = -math.inf

    def begin(self, lately: Sequence[float]) -> dict[str, Any]:
        self._arguments = Arguments(Footprint(), AtRest(), self._device)
        return {}

    def entry(self, module: tvm.runtime.Module, name: str) -> Entry:
        return partial(module.time_evaluator, name, self._device)

    def run(
        self, id: int, incumbent: float | None, patience: float, last: bool, lately: Sequence[float] = ()
    ) -> dict[str, Any]:
        """As `Timer.run`. Ends the process where the program broke the GPU's context: nothing runs in it any more."""
        began = time.perf_counter()
        entry, given = self._program(id, last)
        try:
            awake = AWAKE if began - self._rests > AWAKE else 0.0
            stopwatch = _Stopwatch(entry, next(given.calls), awake, self._evaluator.shortest)
            left = LONGEST_TIMING - (time.perf_counter() - began)
            times, stopped = timed(stopwatch, self._evaluator, incumbent, left)
        except Exception:
            self._leave_broken()
            raise
        self._rests = time.perf_counter()
        return self._answer(times, stopped, self._rests - began)

    def _leave_broken(self) -> None:
        try:
            self._device.sync()
        except Exception:
            os._exit(1)


class _Stopwatch:
    """Seconds of single runs; programs shorter than `shortest` seconds are called several times a run."""

    def __init__(self, entry: Entry, arguments: Sequence[Any], awake: float, shortest: float) -> None:
        """Calls it once, which loads the program, and if that was quick for `awake` seconds more."""
        self._entry, self._arguments = entry, arguments
        called = usual = self._calls(1)[0]
        if called < awake:
            usual = min(called, self._calls(math.ceil(awake / max(called, 1e-6)))[0])
        self._number = max(1, min(MOST_CALLS, math.ceil(shortest / max(usual, 1e-7))))
        # A hopeless one is not run again; a quick one is, several times a run: the seconds of a single call hold its start.
        self._first = [called] if called >= QUICK else []

    def runs(self, count: int) -> list[float]:
        first, self._first = self._first, []
        left = count - len(first)
        return [*first, *(self._calls(self._number, left) if left else ())]

    def _calls(self, number: int, runs: int = 1) -> list[float]:
        """Seconds a call, of each of `runs` of that many. TVM makes one more before all of them."""
        return [float(seconds) for seconds in self._entry(number=number, repeat=runs)(*self._arguments).results]
