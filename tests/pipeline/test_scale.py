"""Networks of hundreds of operators: what a slot costs beside building and timing grows with their number, not faster."""

from __future__ import annotations

import time

import pytest

from tests.tries import quickest
from workers.engine.methods import method
from workers.engine.ports import Progress
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.scheduler.dynatune import DynaTune, Index
from workers.landscapes import SimulatedClock, SyntheticLandscape, synthetic_operators
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.events import Event, encode
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop
from workers.pipeline.books import Books

FEW, MANY = 30, 240
SLACK = 1.6
"""Of the ratio that a linear cost has: processor time varies by some ten per cent."""
DECISION = 0.05
"""s, of the quickest of three tries."""


class Processor(SimulatedClock):
    """Processor time of this process: what others do on this machine does not count."""

    def now(self) -> float:
        return time.process_time()


class Instant(SyntheticLandscape):
    def charge(self, category: str, seconds: float) -> None:
        """Takes no time."""


def slot(count: int) -> float:
    """Seconds of scheduling and bookkeeping a slot, checkpoints left out."""
    clock, last = Processor(), dict[str, Event]()
    backend, began = Instant(3, synthetic_operators(1, count), clock), clock.now()

    def emit(event: Event) -> None:
        encode(event)
        last[event["kind"]] = event

    def wanted() -> str:
        return "stop" if "slot" in last and last["slot"]["slot"] >= 2 * FEW else "continue"

    chosen = method("random", {"scheduler": "round_robin"})
    TuningLoop(backend, chosen, Budget(), 7, PEAK_FLOPS, clock, emit, wanted, {"start": began}).run()
    report = last["finished"]["report"]
    spent = [
        seconds
        for name, seconds in report["phases"]["tuning"].items()
        if name.startswith(("decision", "bookkeeping")) and name != "bookkeeping/checkpoint"
    ]
    return sum(spent) / float(report["slots"])


def growth(samples: int = 3) -> float:
    """What a slot of MANY costs against one of FEW: of each the quickest sample, taken in turn."""
    many, few = zip(*((slot(MANY), slot(FEW)) for _ in range(samples)), strict=True)
    return min(many) / min(few)


def decision(count: int) -> float:
    """Seconds of a decision of `auto` once every operator had three slots; the quickest of nine."""
    scheduler = scheduler_named(method("auto").scheduler, Setting(0, PEAK_FLOPS))
    progress = [
        Progress(operator, [1e-3 * (1 + operator.index % 7 + 3 / (1 + n)) for n in range(48)], 3, 3.0, False)
        for operator in synthetic_operators(1, count)
    ]
    for one in progress:
        scheduler.observe(one)
    taken = []
    for _ in range(9):
        began = time.process_time()
        scheduler.choose(progress, 1.0)
        taken.append(time.process_time() - began)
    return min(taken)


def test_a_slot_costs_no_more_than_its_share_of_operators() -> None:
    assert growth() < SLACK * MANY / FEW


def linear(few: float, tries: int = 3) -> bool:
    """Whether a decision among half of MANY takes no more than its share of what one among FEW took (s)."""
    most = SLACK * MANY / 2 / FEW * few
    return quickest(lambda: decision(MANY // 2), most, tries) < most


def test_a_decision_is_quick_and_linear() -> None:
    few = quickest(lambda: decision(FEW), DECISION)
    assert few < DECISION
    assert linear(few)


@pytest.mark.mutation
def test_a_quadratic_decision_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    index = DynaTune._index

    def careless(self: DynaTune, one: Progress, slots: int) -> Index:
        return [index(self, one, slots) for _ in range(0, len(self._beliefs), 16)].pop()

    monkeypatch.setattr(DynaTune, "_index", careless)
    assert not linear(decision(FEW), tries=1)


@pytest.mark.mutation
def test_a_quadratic_slot_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Books.progress

    def careless(self: Books, operator: int, exhausted: bool) -> Progress:
        return [progress(self, every, exhausted) for every in range(len(self.best))][operator]

    monkeypatch.setattr(Books, "progress", careless)
    assert growth(samples=1) > SLACK * MANY / FEW
