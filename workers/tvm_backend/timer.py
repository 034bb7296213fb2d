"""Times programs that were compiled: in the process that compiled them, or on a device elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tvm

from workers.engine.evaluator import evaluator_from
from workers.engine.evaluator.estimate import KEPT_RUNS
from workers.tvm_backend import runtime
from workers.tvm_backend.arguments import Arguments, Footprint, Given
from workers.tvm_backend.handover import Handover
from workers.tvm_backend.moment import Moment
from workers.tvm_backend.stopwatch import Stopwatch, timed

Entry = Callable[..., Any]


class Timer:
    """Of the machine it is on; `begin` makes TVM's threads, all before may be done in a process that is forked."""

    def __init__(self, target: tvm.target.Target, threads: int) -> None:
        self.handover, self.moment = Handover(target, threads), Moment(target, threads)
        self._kept: dict[int, tuple[Entry, dict[str, Any]]] = {}

    def load(self, evaluator: dict[str, Any], footprint: Sequence[int]) -> None:
        """`evaluator` {name, parameters}; `footprint`: a `Footprint`'s numbers."""
        self._evaluator = evaluator_from(evaluator["name"], evaluator["parameters"])
        self._footprint = Footprint(*footprint)

    def begin(self, lately: Sequence[float]) -> dict[str, Any]:
        """`lately`: looks at the machine's moment that others took."""
        self._cores = runtime.spread_threads()
        self.moment.lately.extend(lately)
        self._arguments = Arguments(self._footprint, self.handover)
        return {}

    def entry(self, module: tvm.runtime.Module, name: str) -> Entry:
        """What `keep` takes, of a program in a library."""
        return module[name]  # type: ignore[no-any-return]

    def keep(self, id: int, entry: Entry, **described: Any) -> None:
        """`described`: what `Arguments.of` takes, by its names."""
        self._kept[id] = entry, described

    def run(
        self, id: int, incumbent: float | None, patience: float, last: bool, lately: Sequence[float] = ()
    ) -> dict[str, Any]:
        """{seconds, spread, runs, stopped, taken, rested, waited, looks, times} of a program that is kept, and after the `last`
        time forgotten; see `Moment` for `patience` and what others saw `lately`."""
        began = time.perf_counter()
        entry, given = self._program(id, last)
        stopwatch = Stopwatch(entry, given, self.handover, self._evaluator.shortest)
        with runtime.on_core(self._cores):
            rested = self.moment.acquainted(lately)
            (times, stopped), waited = self.moment.of(partial(timed, stopwatch, self._evaluator, incumbent), patience)
        taken = time.perf_counter() - began - rested - waited
        return self._answer(times, stopped, taken, rested, waited, self.moment.looks)

    def _program(self, id: int, last: bool) -> tuple[Entry, Given]:
        """A program that is kept, and its arguments."""
        entry, described = self._kept.pop(id) if last else self._kept[id]
        return entry, self._arguments.of(**described)

    def _answer(
        self,
        times: Sequence[float],
        stopped: str,
        taken: float,
        rested: float = 0.0,
        waited: float = 0.0,
        looks: Sequence[float] = (),
    ) -> dict[str, Any]:
        seconds, spread = self._evaluator.estimate(times)
        return {
            "seconds": seconds,
            "spread": spread,
            "runs": len(times),
            "stopped": stopped,
            "taken": taken,
            "rested": rested,
            "waited": waited,
            "looks": list(looks),
            "times": list(times[:KEPT_RUNS]),
        }

    def drop(self) -> None:
        """Forgets every program."""
        self._kept.clear()
