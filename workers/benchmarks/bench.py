"""Programs of a network's operators, timed in this process as ours are while a run measures.

TVM's runner leaves threads where Linux puts them and weights in the caches, ours does not (`Stopwatch`, `Arguments`): a
sum by one instrument says little about a sum by the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

from workers.engine.methods import method
from workers.messages.spec import RunSpec
from workers.tvm_backend import runtime


@dataclass(frozen=True)
class Ready:
    """A compiled program of the operator at this place, and its tensors."""

    operator: int
    program: Any
    shapes: Any


class Bench:
    """The instruments. Alone on the machine; after `runtime.load`."""

    def __init__(self, spec: RunSpec, target: Any, mod: Any, workloads: Sequence[Any]) -> None:
        """Of a network's module, and the workloads of its operators."""
        from workers.tvm_backend.arguments import Arguments
        from workers.tvm_backend.footprint import footprint
        from workers.tvm_backend.handover import Handover
        from workers.tvm_backend.moment import Moment

        self._target, self._workloads = target, workloads
        self._evaluator, self._cores = method("auto").make_evaluator(), runtime.spread_threads()
        self._handover, self._moment = Handover(target, spec.threads), Moment(target, spec.threads)
        self._arguments = Arguments(footprint(mod), self._handover)

    def ready(self, operator: int, schedule: Any) -> Ready:
        from workers.tvm_backend.programs import argument_tensors, compile_program

        return Ready(operator, compile_program(schedule, self._target), argument_tensors(schedule.mod))

    def on_core(self) -> AbstractContextManager[None]:
        """Timings belong in here."""
        return runtime.on_core(self._cores)

    def seconds(self, one: Ready) -> float:
        """What it takes now."""
        from workers.tvm_backend.pool import QUIET
        from workers.tvm_backend.stopwatch import Stopwatch, timed

        workload = self._workloads[one.operator]
        given = self._arguments.of(one.operator, one.shapes, **workload.reading)
        stopwatch = Stopwatch(one.program, given, self._handover, self._evaluator.shortest)
        (runs, _), _ = self._moment.of(partial(timed, stopwatch, self._evaluator, None), QUIET)
        return self._evaluator.estimate(runs)[0]
