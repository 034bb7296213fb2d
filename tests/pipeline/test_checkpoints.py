"""How often a run saves itself: rarely where that is dear, and never much more rarely than once a minute."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS
from workers.engine.methods import method
from workers.engine.proposer import GuidedProposer
from workers.landscapes import SimulatedClock, SyntheticLandscape
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop
from workers.pipeline.telling import CHECKPOINT_LATEST, CHECKPOINT_SECONDS


def between(patch: pytest.MonkeyPatch, making: float, telling: float) -> list[float]:
    """Seconds between the end of a checkpoint and the next one, without the slot that was under way; `making` one
    takes so long, `telling` of it so long until it is taken."""
    clock, told = SimulatedClock(), list[tuple[float, float]]()
    lengths: list[float] = []
    state = GuidedProposer.state

    def slow(self: GuidedProposer) -> dict[str, Any]:
        clock.advance(making / len(OPERATORS))
        return state(self)

    def emit(event: Event) -> None:
        if event["kind"] == "slot":
            lengths.append(event["ended"] - event["began"])
        if "checkpoint" in event:
            clock.advance(telling)
            told.append((event["clock"], clock.now()))

    patch.setattr(GuidedProposer, "state", slow)
    backend = SyntheticLandscape(3, OPERATORS, clock)
    TuningLoop(backend, method("random"), Budget(seconds=400.0), 7, PEAK_FLOPS, clock, emit, lambda: "continue").run()
    gaps = [began - ended for (_, ended), (began, _) in pairwise(told[:-1])]
    return [gap - max(lengths) for gap in gaps]


def test_quick_ones_come_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = between(monkeypatch, 0.0, 0.0)
    assert max(gaps) <= CHECKPOINT_SECONDS
    assert len(gaps) > 10


def test_a_journal_that_is_slow_to_take_them_makes_them_no_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = between(monkeypatch, 0.0, 3.0)
    assert max(gaps) <= CHECKPOINT_SECONDS
    assert len(gaps) > 10


def test_dear_ones_are_rarer_and_come_once_a_minute_at_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = between(monkeypatch, 6.0, 0.0)
    assert CHECKPOINT_SECONDS < max(gaps) <= CHECKPOINT_LATEST
    assert len(gaps) > 2
