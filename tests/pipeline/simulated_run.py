"""Whole runs on a synthetic landscape: a second of tuning time costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.engine.known import Known
from workers.engine.methods import Method, method
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Operator
from workers.landscapes import Landscape, SimulatedClock, SyntheticLandscape, synthetic_operators
from workers.landscapes.synthetic import PEAK_FLOPS
from workers.messages.events import Event, decode, encode
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop
from workers.supervision.directory import DirectoryJournal, History

OPERATORS = synthetic_operators(1, 6)
WALK = {"explorer.chains": "16", "explorer.steps": "20"}
"""Of annealing: everything that a walk has, in a tenth of the time. What a search is worth is asked of whole presets."""


@dataclass
class Wish:
    """What a user wants: `word` once so many batches have been measured."""

    word: str = "continue"
    after: int = 0
    batches: int = 0

    def __call__(self) -> str:
        return self.word if self.batches >= self.after else "continue"


@dataclass
class Simulation:
    """One attempt of a run; `lines` are its events as they go up the pipe."""

    method: Method
    budget: Budget
    seed: int = 7
    operators: Sequence[Operator] = OPERATORS
    faults: Mapping[str, float] | None = None
    history: History = field(default_factory=History)
    known: Mapping[int, Known] = field(default_factory=dict)
    tuned: Collection[int] | None = None
    wish: Wish = field(default_factory=Wish)
    landscape: Callable[[SimulatedClock], Landscape] | None = None
    lines: list[str] = field(default_factory=list)
    asked: list[Candidate] = field(default_factory=list)

    def run(self) -> str:
        clock = SimulatedClock(self.history.clock)
        made = self.landscape or (lambda clock: SyntheticLandscape(3, self.operators, clock, self.faults))
        backend = _Watched(made(clock), self)
        loop = TuningLoop(
            backend, self.method, self.budget, self.seed, PEAK_FLOPS, clock, self._emit, self.wish, self.history.spent,
            self.known, self.tuned,
        )  # fmt: skip
        whole = loop.resume(self.history.checkpoint, self.history.measurements, self.history.slots)
        return loop.run() if whole else ""

    @property
    def events(self) -> list[Event]:
        return [decode(line) for line in self.lines]

    @property
    def measurements(self) -> list[dict[str, Any]]:
        return measurements(self.events)

    @property
    def report(self) -> dict[str, Any]:
        return dict(self.events[-1]["report"])

    def _emit(self, event: Event) -> None:
        self.lines.append(encode(event))
        self.wish.batches += event["kind"] == "batch"


class _Watched:
    """The landscape, with what it was asked written down."""

    def __init__(self, backend: Landscape, simulation: Simulation) -> None:
        self._backend, self._simulation = backend, simulation
        self.operators, self.remember = backend.operators, backend.remember
        self.spent, self.close = backend.spent, backend.close

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        self._simulation.asked += candidates
        return self._backend.measure(candidates, incumbents)


def quick(name: str) -> Method:
    """The preset, with short walks."""
    return method(name, WALK if method(name).explorer == "simulated_annealing" else {})


def simulated(name: str = "round_robin", trials: int | None = 150, **fields: Any) -> Simulation:
    """A finished run of `chosen`, or of the preset `name` with short walks."""
    budget = fields.pop("budget", Budget(trials=trials))
    simulation = Simulation(fields.pop("chosen", None) or quick(name), budget, **fields)
    simulation.run()
    return simulation


def measurements(events: Sequence[Event]) -> list[dict[str, Any]]:
    return [measurement for event in events if event["kind"] == "batch" for measurement in event["measurements"]]


def kept(path: Path, *attempts: Sequence[str]) -> History:
    """What a journal of these lines gives to the next attempt."""
    with DirectoryJournal(path) as journal:
        journal.write([decode(line) for lines in attempts for line in lines])
        return journal.history()
