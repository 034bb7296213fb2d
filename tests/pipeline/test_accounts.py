"""Every second of a run is in one account, and one that is lost shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS
from workers.engine.methods import method
from workers.engine.ports import Candidate, Outcome
from workers.engine.proposer import GuidedProposer
from workers.engine.scheduler import DynaTune
from workers.engine.space import Sketch
from workers.landscapes import Charged, Costs, SimulatedClock, SyntheticLandscape
from workers.landscapes.costs import UNITS, key_of
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop
from workers.pipeline.accounts import Accounts
from workers.pipeline.books import Books

TOLERANCE = 0.02
CHOSEN = method("auto", {"explorer.chains": "8", "explorer.steps": "5"})
UNIT = {"explorer": 1.0, "sampler": 0.5, "cost_model": 0.2, "scheduler": 0.0}
COSTS = Costs({key_of(role, CHOSEN): dict.fromkeys(units, UNIT[role]) for role, units in UNITS.items()})
SLOW = (
    (DynaTune, "choose", 4.0), (DynaTune, "observe", 4.0), (GuidedProposer, "propose", 2.0), (GuidedProposer, "observe", 0.4),
    (GuidedProposer, "state", 2.0), (Books, "observe", 4.0), (Sketch, "features", 1.5),
)  # fmt: skip
"""Parts that charge no clock of themselves, and seconds a call that they take here."""

ACCOUNTS = {
    "decision/choose", "decision/observe", "search/plan", "search/explore", "search/features", "search/predict",
    "search/fit", "search/sample", "search/learn", "apply", "build", "wait", "measure/programs", "measure/rest",
    "bookkeeping/dispatch", "bookkeeping/books", "bookkeeping/events", "bookkeeping/checkpoint",
}  # fmt: skip


class Device(SyntheticLandscape):
    """Waits for a lock, and loses time between programs and around batches that no program explains."""

    apply_seconds = 0.3

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        self.charge("wait", 3.0)
        self.charge("build", 1.5)
        self.charge("measure", 3.0)
        self._clock.advance(3.0)
        return super().measure(candidates, incumbents)


def phases(patch: pytest.MonkeyPatch) -> dict[str, dict[str, float]]:
    """Of a run in which everything takes its time."""
    clock, events = SimulatedClock(), list[Event]()

    def slow(kind: Any, name: str, seconds: float) -> None:
        quick = getattr(kind, name)

        def slowed(*given: Any, **named: Any) -> Any:
            clock.advance(seconds)
            return quick(*given, **named)

        patch.setattr(kind, name, slowed)

    def emit(event: Event) -> None:
        clock.advance(2.0)
        events.append(event)

    for one in SLOW:
        slow(*one)
    chosen, backend = Charged.over(CHOSEN, COSTS, clock), Device(3, OPERATORS, clock)
    TuningLoop(backend, chosen, Budget(trials=150), 7, PEAK_FLOPS, clock, emit, lambda: "continue").run()
    report = events[-1]["report"]
    assert sum(report["searched"].values()) == pytest.approx(report["spent"]["search"], abs=1e-3)
    found: dict[str, dict[str, float]] = report["phases"]
    assert sum(sum(one.values()) for one in found.values()) == pytest.approx(events[-1]["clock"], abs=1e-3)
    return found


def unaccounted(found: dict[str, dict[str, float]]) -> float:
    """Share of the clock that nobody claims."""
    return sum(one["unaccounted"] for one in found.values()) / sum(sum(one.values()) for one in found.values())


def test_every_second_is_in_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    found = phases(monkeypatch)
    assert list(found) == ["start", "warm-up", "tuning"]
    assert {name for name, seconds in found["tuning"].items() if seconds > 0} >= ACCOUNTS
    assert abs(unaccounted(found)) < 1e-6


@pytest.mark.mutation
@pytest.mark.parametrize("lost", sorted(ACCOUNTS))
def test_an_account_that_is_dropped_is_noticed(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    of = Accounts.of
    monkeypatch.setattr(Accounts, "of", lambda self: {k: v for k, v in of(self).items() if k != lost})
    assert unaccounted(phases(monkeypatch)) > TOLERANCE


def test_the_search_s_seconds_by_part_are_those_of_all_attempts() -> None:
    clock = SimulatedClock()
    first, second = Books(OPERATORS, {}, clock), Books(OPERATORS, {}, clock)
    for books, account, seconds in (
        (first, "search/explore", 2.0),
        (first, "search/fit", 1.0),
        (first, "decision/choose", 4.0),
        (second, "search/explore", 0.5),
    ):
        with books.accounts.spending(account):
            clock.advance(seconds)
    second.remember(first.searched())
    assert first.searched() == {"explore": 2.0, "fit": 1.0}
    assert second.searched() == {"explore": 2.5, "fit": 1.0}


class Real(SimulatedClock):
    """Processor time of this process: what others do on this machine does not count."""

    def now(self) -> float:
        return time.process_time()


class Instant(SyntheticLandscape):
    """Answers in no time worth counting: what the loop does is all there is."""

    def charge(self, category: str, seconds: float) -> None:
        pass


def test_the_loop_s_own_seconds_are_accounted_for_on_a_real_clock() -> None:
    clock, events = Real(), list[Event]()
    backend, began = Instant(3, OPERATORS, clock), clock.now()
    budget = Budget(trials=300)
    TuningLoop(backend, CHOSEN, budget, 7, PEAK_FLOPS, clock, events.append, lambda: "continue", {"start": began}).run()
    assert abs(unaccounted(events[-1]["report"]["phases"])) < TOLERANCE


def test_the_innermost_span_is_charged_and_claims_are_taken_off() -> None:
    clock = SimulatedClock()
    accounts = Accounts(clock)

    def spend(account: str, seconds: float, inside: Callable[[], object] = lambda: None) -> None:
        with accounts.spending(account):
            clock.advance(seconds)
            inside()

    def inner() -> None:
        spend("b/inner", 2.0)
        clock.advance(0.5)
        accounts.claim("c", 0.5)

    spend("a/outer", 1.0, inner)
    spend("a/outer", 1.0)
    with pytest.raises(ZeroDivisionError):
        spend("d", 1.0, lambda: 1 / 0)
    assert accounts.of() == {"a/outer": 2.0, "b/inner": 2.0, "c": 0.5, "d": 1.0}
