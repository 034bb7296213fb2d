"""What TVM sees in the program of a configuration, as features for a cost model: its loops in place of its knobs.

TVM's PerStoreFeature describes every store of a program by 164 numbers; a candidate's features are their sum and their
largest over its stores. To see the loops the program must be scheduled, where knobs are looked up in a table. Processor
time a candidate, on operators of a small network: 25 ms with 11 knobs, 9 ms with 6, 0.4 to 2 ms with 2 or 3. An
annealing of 12,928 evaluations would take five minutes; give it an explorer that asks seldom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate

from workers.engine.methods import Method
from workers.engine.ports import Proposer
from workers.engine.space import Choices, Features, Operator, Sketch
from workers.tvm_backend.programs import Invalid, Workload

LOWERED = "lowered"
"""Value of `Search.features`."""
STORE = 164
"""Numbers of one store: TVM's default of five buffers and ten samples of arithmetic intensity."""
KEPT = 20_000
"""Candidates remembered a sketch, 1.3 kB each: a walk meets many again."""


@dataclass(frozen=True)
class LoweredSketch(Sketch):
    """A sketch whose features are its programs'; a configuration that TVM refuses has zeros."""

    workload: Workload | None = None
    number: int = 0
    known: dict[tuple[int, ...], Features] = field(default_factory=dict, compare=False, hash=False)

    @property
    def width(self) -> int:
        """Number of feature columns."""
        return 2 * STORE

    @property
    def tables(self) -> None:
        """None: a program's loops come of all its knobs together."""

    def features(self, choices: Choices) -> Features:
        """Features of `choices` (n, knobs), as (n, width)."""
        rows = [tuple(row) for row in choices.tolist()]
        if not rows:
            return np.zeros((0, self.width), dtype=np.float32)
        found = {row: self.known[row] if row in self.known else self._extracted(row) for row in dict.fromkeys(rows)}
        self.known.update(found)
        for row in list(self.known)[: max(0, len(self.known) - KEPT)]:  # the longest known
            del self.known[row]
        return np.stack([found[row] for row in rows])

    def _extracted(self, row: tuple[int, ...]) -> Features:
        assert self.workload is not None
        try:
            schedule = self.workload.schedule(self.number, row)
        except Invalid:
            return np.zeros(self.width, dtype=np.float32)
        extractor = ms.feature_extractor.PerStoreFeature()
        (found,) = extractor.extract_from(self.workload.context, [MeasureCandidate(schedule, [])])
        stores = found.numpy().astype(np.float32).reshape(-1, STORE)
        if not len(stores):
            return np.zeros(self.width, dtype=np.float32)
        return np.concatenate([stores.sum(axis=0), stores.max(axis=0)])


@dataclass(frozen=True)
class Lowering(Method):
    """A method whose cost models see lowered features; explorers and samplers walk the knobs as ever."""

    workloads: tuple[Workload, ...] = ()

    @classmethod
    def over(cls, method: Method, workloads: Sequence[Workload]) -> Method:
        """`method` itself when it looks at knobs."""
        if method.search.features != LOWERED:
            return method
        return cls.extending(method, workloads=tuple(workloads))

    def make_proposer(self, operator: Operator, *given: Any, **named: Any) -> Proposer:
        workload = self.workloads[operator.index]
        sketches = tuple(
            LoweredSketch(s.knobs, s.bounds, s.structures, workload, number)
            for number, s in enumerate(operator.sketches)
        )
        return super().make_proposer(replace(operator, sketches=sketches), *given, **named)
