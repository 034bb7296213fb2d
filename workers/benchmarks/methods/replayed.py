"""Cells on recorded landscapes: no device, no luck but the seed's, every run again the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workers.benchmarks.methods.tally import Tally
from workers.engine.methods import Method
from workers.engine.ports import Backend
from workers.engine.scheduler import regret
from workers.engine.space import Configuration
from workers.headless.errors import UserMistake
from workers.landscapes import (
    Charged,
    Costs,
    CurveLandscape,
    CurveRecording,
    LandscapeError,
    SimulatedClock,
    SpaceLandscape,
    SpaceRecording,
)
from workers.landscapes.files import described
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop

CURVE, SPACE = "curve", "space"
SPACE_TRIALS = 400
KEPT_POINTS = 200


@dataclass(frozen=True)
class Source:
    """One landscape file, read."""

    path: Path
    kind: str
    recording: CurveRecording | SpaceRecording
    costs: Costs

    @property
    def network(self) -> str:
        return str(self.recording.header["network"])

    @property
    def hardware(self) -> dict[str, Any]:
        return dict(self.recording.header["hardware"])

    def trials(self, per_operator: int | None) -> int:
        """Of a run: all that was recorded, so that every schedule comes to the same end and only the time to it differs;
        in a space 400 an operator, or a quarter of the smallest part."""
        header = self.recording.header
        if per_operator is None and isinstance(self.recording, CurveRecording):
            lengths = [len(search) for row in self.recording.searches for search in row]
            per_operator = max(lengths)
        elif per_operator is None:
            assert isinstance(self.recording, SpaceRecording)
            per_operator = min([SPACE_TRIALS, *(max(1, part.operator.size // 4) for part in self.recording.parts)])
        return per_operator * len(header["operators"])


def sources(directory: str, networks: list[str] | None) -> list[Source]:
    """Every landscape of a directory, or those of some networks; raises UserMistake."""
    folder = Path(directory).resolve()
    paths = sorted([*folder.glob("*.curve.npz"), *folder.glob("*.space.npz")])
    if not paths:
        raise UserMistake(f"--landscape {directory}: there is no landscape; record one (manage.py landscape record)")
    try:
        costs = Costs.read(folder / "costs.json")
        found = [_source(path, costs) for path in paths]
    except LandscapeError as error:
        raise UserMistake(str(error)) from None
    if networks:
        known = sorted({source.network for source in found})
        for name in networks:
            if name not in known:
                raise UserMistake(f"--networks {name}: {directory} has no landscape of it; it has {', '.join(known)}")
        found = [source for source in found if source.network in networks]
    return found


def _source(path: Path, costs: Costs) -> Source:
    if path.name.endswith(".curve.npz"):
        return Source(path, CURVE, CurveRecording.read(path), costs)
    return Source(path, SPACE, SpaceRecording.read(path), costs)


def run_cell(source: Source, chosen: Method, seed: int, trials: int) -> dict[str, Any]:
    """One run of `trials`, on `source`; raises LandscapeError for a part that nobody timed."""
    decision = source.costs.of("scheduler", chosen)["decision"]
    if isinstance(source.recording, CurveRecording):
        return _on_curves(source, chosen, seed, trials, decision)
    return _in_space(source, chosen, seed, trials, decision)


def _on_curves(source: Source, chosen: Method, seed: int, trials: int, decision: float) -> dict[str, Any]:
    assert isinstance(source.recording, CurveRecording)
    clock = SimulatedClock()
    landscape = CurveLandscape(source.recording, clock, seed)
    tally = Tally([described(operator) for operator in landscape.operators()])
    slots = _loop(source, landscape, landscape.played(chosen), seed, trials, clock, tally, decision)
    return {**tally.figures(), "regret": _regret(landscape, slots, chosen.rhythm.plan)}


def _in_space(source: Source, chosen: Method, seed: int, trials: int, decision: float) -> dict[str, Any]:
    assert isinstance(source.recording, SpaceRecording)
    clock = SimulatedClock()
    charged = Charged.over(chosen, source.costs, clock)
    landscape = SpaceLandscape(source.recording, clock, chosen.make_evaluator(), seed)

    def truth(measurement: dict[str, Any]) -> float:
        choices = Configuration(0, tuple(measurement["choices"]))
        return landscape.true_seconds(measurement["operator"], choices)

    tally = Tally([described(o) for o in landscape.operators()], truth, lambda operator: charged.walks[operator].steps)
    _loop(source, landscape, charged, seed, trials, clock, tally, decision)
    figures = tally.figures()
    for index, row in enumerate(figures["operators"]):
        walks = charged.walks[index]
        row.update(calls=walks.calls, steps=walks.steps, steps_to_best=walks.to_best, reachable=landscape.best(index))
    return figures


def _loop(
    source: Source,
    landscape: CurveLandscape | SpaceLandscape,
    chosen: Method,
    seed: int,
    trials: int,
    clock: SimulatedClock,
    tally: Tally,
    decision: float,
) -> list[tuple[float, int]]:
    """Runs; returns (end in seconds, operator) of every slot. What a decision costs is charged at the slot's end."""
    slots: list[tuple[float, int]] = []

    def hear(event: Event) -> None:
        tally.hear(event)
        if event["kind"] == "slot":
            slots.append((event["ended"], event["operator"]))
            landscape.charge("decision", decision)

    backend: Backend = landscape
    peak = float(source.recording.header["peak_flops"])
    TuningLoop(backend, chosen, Budget(trials=trials), seed, peak, clock, hear, lambda: "continue").run()
    return slots


def _regret(landscape: CurveLandscape, slots: list[tuple[float, int]], plan: int) -> list[list[float]]:
    """(slot, cumulative regret in s), DynaTune 4.1; every operator's curve begins after one trial, the warm-up."""
    operators = landscape.operators()
    curves = []
    for index in range(len(operators)):
        times = np.asarray(landscape.curves[str(index)])
        first = int(np.argmax(np.isfinite(times)))
        if not np.isfinite(times[first]):
            return []  # an operator that never works has no regret
        places = np.minimum(first + plan * np.arange(len(slots) + 1), len(times) - 1)
        curves.append(times[places])
    found = regret([operator for _, operator in slots], curves, [operator.weight for operator in operators])
    step = max(1, len(found) // KEPT_POINTS)
    return [[place + 1, float(found[place])] for place in range(0, len(found), step)]
