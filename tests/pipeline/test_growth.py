"""What a long run keeps in memory: a few kilobytes a measurement, whatever the number of operators."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

import pytest

from workers.engine.methods import method
from workers.engine.ports import Outcome
from workers.engine.proposer import GuidedProposer
from workers.landscapes import SimulatedClock, SyntheticLandscape, synthetic_operators
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.events import Event, encode
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop

TRIALS = 400
ALLOWED = 10 * 1024
"""Bytes a measurement; seen: 1.3 kB. 50 MB in 2,000 measurements would be 25 kB each."""


def growth(trials: int = TRIALS) -> float:
    """Bytes a measurement of the second half of a run."""
    sizes: dict[int, int] = {}

    def emit(event: Event) -> None:
        encode(event)
        for mark in (trials // 2, trials):
            if event.get("trials", 0) >= mark and mark not in sizes:
                gc.collect()
                sizes[mark] = tracemalloc.get_traced_memory()[0]

    clock = SimulatedClock()
    backend = SyntheticLandscape(3, synthetic_operators(1, 6), clock)
    quick = method("auto", {"explorer.chains": "8", "explorer.steps": "5"})
    tracemalloc.start()
    try:
        TuningLoop(backend, quick, Budget(trials=trials), 7, PEAK_FLOPS, clock, emit, lambda: "continue").run()
    finally:
        tracemalloc.stop()
    return (sizes[trials] - sizes[trials // 2]) / (trials - trials // 2)


def test_a_measurement_leaves_a_few_kilobytes() -> None:
    assert growth() < ALLOWED


@pytest.mark.mutation
def test_a_leak_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    observe, kept = GuidedProposer.observe, list[bytes]()

    def leaking(self: GuidedProposer, outcomes: Sequence[Outcome]) -> None:
        kept.extend(bytes(3 * ALLOWED) for _ in outcomes)
        observe(self, outcomes)

    monkeypatch.setattr(GuidedProposer, "observe", leaking)
    assert growth(TRIALS // 2) > ALLOWED
