"""Cells on recorded landscapes: no device, no luck but the seed's, every run again the same."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from workers.benchmarks.tally import Tally
from workers.engine.methods import Method, Rhythm
from workers.engine.ports import Backend
from workers.engine.scheduler import regret
from workers.engine.search import FEATURES
from workers.engine.space import PRODUCTS, Configuration
from workers.headless.content import content_hash
from workers.headless.errors import UserMistake
from workers.landscapes import (
    Charged,
    Costs,
    CurveLandscape,
    CurveRecording,
    LandscapeError,
    RecordedSearch,
    SimulatedClock,
    SpaceLandscape,
    SpaceRecording,
)
from workers.landscapes.calibration import completed, untimed
from workers.landscapes.costs import COSTS, UNITS
from workers.landscapes.files import described
from workers.landscapes.parameters import walking
from workers.landscapes.sources import digests
from workers.messages.events import Event
from workers.messages.spec import ALL, Budget
from workers.pipeline import TuningLoop
from workers.sandbox.lock import MeasureLock

CURVE, SPACE = "curve", "space"
TVM = "apache-tvm"
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
    def name(self) -> str:
        """The file's: recordings of one network by several methods or on several machines are told apart by it."""
        return self.path.name.removesuffix(f".{self.kind}.npz")

    @cached_property
    def content(self) -> str:
        """SHA-256 of the recording and of its directory's costs."""
        both = content_hash(self.path) + content_hash(self.path.with_name(COSTS))
        return hashlib.sha256(both.encode()).hexdigest()

    @property
    def hardware(self) -> dict[str, Any]:
        return dict(self.recording.header["hardware"])

    @property
    def operators(self) -> int:
        """How many."""
        return len(self.recording.searches if isinstance(self.recording, CurveRecording) else self.recording.parts)

    @property
    def longest(self) -> int:
        """Candidates of the longest recorded search; with so many an operator every schedule comes to the same end."""
        assert isinstance(self.recording, CurveRecording)
        return max(len(search) for row in self.recording.searches for search in row)

    def trials(self, per_operator: int | None) -> int:
        """Of a run. On curves half of what was recorded: a schedule may give an operator more than an equal share, as one
        of live runs may, and the final latency of another can be reached before everything is measured. In a space 400
        an operator, or a quarter of the smallest part."""
        if isinstance(self.recording, CurveRecording):
            searches = self.recording.searches
            if per_operator is None:
                each = [float(np.mean([search.trials.sum() for search in row])) for row in searches]
                return max(1, round(sum(each) / 2))
            return per_operator * len(searches)
        parts = self.recording.parts
        if per_operator is None:
            per_operator = min([SPACE_TRIALS, *(max(1, part.operator.size // 4) for part in parts)])
        return per_operator * len(parts)


def sources(
    directory: str, networks: list[str] | None, arms: Iterable[Method], kept: Path, operators: str = ALL
) -> list[Source]:
    """Every landscape of a directory, or those of some networks, with the costs of `arms`; raises UserMistake.

    `operators` "compute" leaves of curves the convolutions and matrix products; spaces are of the largest operators anyway.
    Costs of parts under parameters that the directory's have not are measured once and remembered in `kept`.
    """
    folder = Path(directory).resolve()
    paths = sorted([*folder.glob("*.curve.npz"), *folder.glob("*.space.npz")])
    if not paths:
        raise UserMistake(f"--landscape {directory}: there is no landscape; record one (manage.py landscape record)")
    try:
        costs = _costs(folder / COSTS, list(arms), kept)
        found = [_source(path, costs, operators) for path in paths]
    except LandscapeError as error:
        raise UserMistake(str(error)) from None
    if networks:
        known = sorted({source.network for source in found})
        for name in networks:
            if name not in known:
                raise UserMistake(f"--networks {name}: {directory} has no landscape of it; it has {', '.join(known)}")
        found = [source for source in found if source.network in networks]
    return found


def _costs(path: Path, arms: list[Method], kept: Path) -> Costs:
    """Prices of older code are used and named: on another machine than theirs nothing could be timed in their place."""
    costs = Costs.read(path)
    if costs.older:
        sys.stderr.write(
            f"{path}: prices older than the code of {', '.join(costs.older)}; every cell says so, and manage.py landscape "
            f"calibrate --out {path.parent} times them anew on the machine they are of\n"
        )
    running = hashlib.sha256(json.dumps(digests(), sort_keys=True).encode()).hexdigest()
    more = kept / f"costs-{content_hash(path)[:12]}-{running[:8]}.json"
    if untimed(costs := _and(more, costs), arms):
        with MeasureLock().exclusive():
            # Another process of the same comparison may have timed them while this one waited.
            if untimed(costs := _and(more, costs), arms):
                sys.stderr.write("timing parts whose parameters the landscapes' costs have not\n")
                costs = completed(costs, arms)
                costs.write(more)
    return costs


def _and(more: Path, costs: Costs) -> Costs:
    """With those in the file `more`, where there is one."""
    if not more.exists():
        return costs
    return Costs({**Costs.read(more).seconds, **costs.seconds}, costs.machine, costs.sources)


def _source(path: Path, costs: Costs, operators: str) -> Source:
    found = (
        Source(path, CURVE, _curves(path, operators), costs)
        if path.name.endswith(".curve.npz")
        else Source(path, SPACE, SpaceRecording.read(path), costs)
    )
    if costs.machine not in (found.hardware["name"], ""):
        raise LandscapeError(
            f"{path} was recorded on {found.hardware['name']}, and the costs beside it are of {costs.machine}: keep each "
            "machine's landscapes in a directory of its own"
        )
    theirs, ours = found.recording.header.get("versions", {}).get(TVM), version(TVM)
    if theirs not in (ours, None):
        sys.stderr.write(
            f"{path} was recorded with {TVM} {theirs}, and {ours} is installed: its programs may be others\n"
        )
    return found


def _curves(path: Path, operators: str) -> CurveRecording:
    recording = CurveRecording.read(path)
    if operators == ALL:
        return recording
    kept = [row["index"] for row in recording.header["operators"] if PRODUCTS.search(row["name"])]
    if not kept:
        raise LandscapeError(
            f"{path} has no convolution and no dense layer; compare all its operators (--operators all)"
        )
    return recording.restricted(kept)


def run_cell(
    source: Source, chosen: Method, seed: int, trials: int, hear: Callable[[Event], None] = lambda event: None
) -> dict[str, Any]:
    """One run of `trials`, on `source`, whose events `hear` gets too; raises LandscapeError for a part that nobody timed.
    "older_prices" are the roles whose prices are of other code than this (`Costs.older`); a replay of
    curves pays for no search."""
    if chosen.search.features != FEATURES[0]:
        raise LandscapeError(f"{chosen.name}: a landscape has no programs to lower; compare it live (--live)")
    decision = source.costs.decision(chosen, source.operators)
    on_curves = isinstance(source.recording, CurveRecording)
    play, paid = (_on_curves, ("scheduler",)) if on_curves else (_in_space, tuple(UNITS))
    older = [role for role in source.costs.older if role in paid]
    return {**play(source, chosen, seed, trials, decision, hear), "older_prices": older}


def _on_curves(
    source: Source, chosen: Method, seed: int, trials: int, decision: float, hear: Callable[[Event], None]
) -> dict[str, Any]:
    assert isinstance(source.recording, CurveRecording)
    clock = SimulatedClock()
    landscape = CurveLandscape(source.recording, clock, seed)
    tally = Tally([described(operator) for operator in landscape.operators()])
    slots = _loop(source, landscape, landscape.played(chosen), seed, trials, clock, (tally.hear, hear), decision)
    return {**tally.figures(), "regret": _regret(landscape, slots, chosen.rhythm)}


def _in_space(
    source: Source, chosen: Method, seed: int, trials: int, decision: float, hear: Callable[[Event], None]
) -> dict[str, Any]:
    assert isinstance(source.recording, SpaceRecording)
    clock = SimulatedClock()
    charged = Charged.over(walking(chosen), source.costs, clock)
    landscape = SpaceLandscape(source.recording, clock, chosen.make_evaluator(), seed)

    def truth(measurement: dict[str, Any]) -> float:
        choices = Configuration(0, tuple(measurement["choices"]))
        return landscape.true_seconds(measurement["operator"], choices)

    tally = Tally([described(o) for o in landscape.operators()], truth, lambda operator: charged.walks[operator].steps)
    _loop(source, landscape, charged, seed, trials, clock, (tally.hear, hear), decision)
    figures = tally.figures()
    for index, row in enumerate(figures["operators"]):
        walks = charged.walks[index]
        row.update(
            calls=walks.calls,
            steps=walks.steps,
            steps_to_best=walks.to_best,
            scored_to_best=walks.scored_to_best,
            reachable=landscape.best(index),
        )
    return figures


def _loop(
    source: Source,
    landscape: CurveLandscape | SpaceLandscape,
    chosen: Method,
    seed: int,
    trials: int,
    clock: SimulatedClock,
    listeners: Sequence[Callable[[Event], None]],
    decision: float,
) -> list[tuple[float, int]]:
    """Runs; returns (end in seconds, operator) of every slot. What a decision costs is charged at the slot's end."""
    slots: list[tuple[float, int]] = []

    def hear(event: Event) -> None:
        for listener in listeners:
            listener(event)
        if event["kind"] == "slot":
            slots.append((event["ended"], event["operator"]))
            landscape.charge("decision", decision)

    backend: Backend = landscape
    peak = float(source.recording.header["peak_flops"])
    TuningLoop(backend, chosen, Budget(trials=trials), seed, peak, clock, hear, lambda: "continue").run()
    return slots


def _regret(landscape: CurveLandscape, slots: list[tuple[float, int]], rhythm: Rhythm) -> list[list[float]]:
    """(slot, cumulative regret in s), DynaTune 4.1; every operator's curve begins after its warm-up."""
    operators, curves = landscape.operators(), []
    for search in landscape.searches:
        warm = int(np.argmax(np.isfinite(search.best))) + 1
        if not np.isfinite(search.best[warm - 1]):
            return []  # an operator that never works has no regret
        ends = slot_ends(search, warm, rhythm, len(slots))
        curves.append(search.best[np.asarray([warm, *ends]) - 1])
    found = regret([operator for _, operator in slots], curves, [operator.weight for operator in operators])
    step = max(1, len(found) // KEPT_POINTS)
    return [[place + 1, float(found[place])] for place in range(0, len(found), step)]


def slot_ends(search: RecordedSearch, warm: int, rhythm: Rhythm, count: int) -> list[int]:
    """Candidates of a recorded search that are used up after each of `count` slots, the first `warm` being no slot's.

    A slot is one plan, duplicates included, or as many as `slot_seconds` take; the last ones find nothing left.
    """
    ends, done = [], warm
    for _ in range(count):
        began, left = done, rhythm.slot_seconds
        while done < len(search):
            done = min(done + rhythm.plan, len(search))
            if left is None or float(search.total[began:done].sum()) >= left:
                break
        ends.append(done)
    return ends
