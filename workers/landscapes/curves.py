"""Recorded inner searches, replayed step by step: what schedulers are compared on.

Operators are rested arms (DynaTune 4.1): one that gets no slot does not change, so a recorded search of an operator
goes on where it was, whatever the others got. What is not exact: a search was recorded with one plan size, and the
cost model of another would have been fitted at other times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.methods import Method
from workers.engine.ports import Candidate, Outcome, Proposer, State
from workers.engine.search import COUNTERS
from workers.engine.space import Configuration, Knob, Operator, Sketch
from workers.landscapes import files
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.landscape import Landscape
from workers.messages.causes import DUPLICATE, UNBUILT
from workers.messages.composition import KNOWING

CAUSES = ("", "duplicate", "invalid", "build", "crash", "timeout", "memory", "run", "device", "large")
"""Of outcomes, by the number that a recording has for them; a new one goes to the end, and one that there is no more, as
"device", keeps its place."""
COLUMNS = ("seconds", "build", "measure", "search")
Times = NDArray[np.float64]


@dataclass(frozen=True)
class RecordedSearch:
    """One recorded inner search, in the order of measuring; shapes (n,).

    `seconds` of the program (nan when there is none), `causes` as indexes of CAUSES; `build`, `measure` and `search`
    are what the candidate took on the clock. `again`: the best program's time in later measurements.
    """

    seconds: Times
    build: Times
    measure: Times
    search: Times
    causes: NDArray[np.uint8]
    again: Times

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def best(self) -> Times:
        """Best time so far after each candidate; inf before the first valid one."""
        found: Times = np.minimum.accumulate(np.where(np.isnan(self.seconds), np.inf, self.seconds))
        return found

    @property
    def trials(self) -> NDArray[np.bool_]:
        """Which candidates were built."""
        return ~np.isin(self.causes, [CAUSES.index(cause) for cause in UNBUILT])

    @property
    def total(self) -> Times:
        """Seconds on the clock of each candidate."""
        found: Times = np.nan_to_num(self.build) + np.nan_to_num(self.measure) + np.nan_to_num(self.search)
        return found

    def arrays(self) -> files.Arrays:
        stored: files.Arrays = {name: files.codes(getattr(self, name)) for name in (*COLUMNS, "again")}
        return {**stored, "causes": self.causes.astype(np.uint8)}

    @classmethod
    def of_arrays(cls, arrays: files.Arrays) -> RecordedSearch:
        times = {name: files.times_of(arrays[name]) for name in (*COLUMNS, "again")}
        return cls(**times, causes=arrays["causes"])


@dataclass(frozen=True)
class CurveRecording:
    """`searches[operator][seed]`; `header` has network, operators (`files.described`), peak_flops, method, hardware,
    and whether what was too large was left uncompiled as in a run ("thrift")."""

    header: dict[str, Any]
    searches: tuple[tuple[RecordedSearch, ...], ...]

    @property
    def noise(self) -> float:
        """Median relative deviation of a best time measured again from the one recorded."""
        found = [abs(s.again / s.best[-1] - 1) for row in self.searches for s in row if len(s.again)]
        return float(np.nanmedian(np.concatenate(found))) if found else 0.0

    def restricted(self, kept: Sequence[int]) -> CurveRecording:
        """With these operators alone, numbered anew from 0."""
        rows = self.header["operators"]
        operators = [{**rows[index], "index": place} for place, index in enumerate(kept)]
        return CurveRecording({**self.header, "operators": operators}, tuple(self.searches[index] for index in kept))

    def write(self, path: Path) -> None:
        arrays = {
            f"{name}_{operator}_{seed}": array
            for operator, row in enumerate(self.searches)
            for seed, search in enumerate(row)
            for name, array in search.arrays().items()
        }
        files.write(path, "curve", {**self.header, "seeds": len(self.searches[0])}, arrays)

    @classmethod
    def read(cls, path: Path) -> CurveRecording:
        header, arrays = files.read(path, "curve")
        names = (*COLUMNS, "again", "causes")
        searches = tuple(
            tuple(
                RecordedSearch.of_arrays({name: arrays[f"{name}_{operator}_{seed}"] for name in names})
                for seed in range(header["seeds"])
            )
            for operator in range(len(header["operators"]))
        )
        return cls(header, searches)


class CurveLandscape(Landscape):
    """Operators whose only knob is the step of a recorded search.

    Each operator replays one of its recorded seeds, drawn by `seed`: with K operators and S seeds S^K networks.
    """

    apply_seconds = 0.0  # is in the recorded build

    def __init__(self, recording: CurveRecording, clock: SimulatedClock, seed: int) -> None:
        rng = np.random.default_rng([seed, *b"curves"])  # no scheduler of this seed draws alike
        self.searches = [row[int(rng.integers(len(row)))] for row in recording.searches]
        rows = recording.header["operators"]
        super().__init__([_operator(row, len(s)) for row, s in zip(rows, self.searches, strict=True)], clock)
        self.clock = clock

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        """See `Landscape`."""
        step, search = candidate.configuration.choices[0], self.searches[candidate.operator]
        cause = CAUSES[int(search.causes[step])]
        return Outcome(
            candidate,
            candidate.configuration,
            "" if cause == DUPLICATE else f"{candidate.operator}-{step}",
            None if cause else float(search.seconds[step]),
            runs=0 if cause else 1,
            stopped="" if cause else "complete",
            cause=cause,
            build_seconds=float(np.nan_to_num(search.build[step])),
            measure_seconds=float(np.nan_to_num(search.measure[step])),
        )

    def played(self, method: Method) -> Method:
        """The method with its inner search replaced by the recorded one. The oracle is shown the curves, and how much of one a
        slot is."""
        if method.scheduler == KNOWING:
            rhythm = method.rhythm
            plan = rhythm.plan if rhythm.slot_seconds is None else None
            shown = {
                **method.parameters.get("scheduler", {}),
                "curves": self.curves,
                "plan": plan,
                "places": self.places,
            }
            method = replace(method, parameters={**method.parameters, "scheduler": shown})
        return _Played.extending(method, landscape=self)

    @property
    def curves(self) -> dict[str, list[float]]:
        """Best time (s) after each trial by operator index; what was not built is no trial."""
        return {str(index): search.best[search.trials].tolist() for index, search in enumerate(self.searches)}

    @property
    def places(self) -> dict[str, list[int]]:
        """Where among the recorded candidates the points of `curves` lie, by operator index."""
        return {str(index): np.flatnonzero(search.trials).tolist() for index, search in enumerate(self.searches)}


@dataclass(frozen=True)
class _Played(Method):
    landscape: CurveLandscape | None = None

    def make_proposer(self, operator: Operator, seed: int, *given: Any, **named: Any) -> Proposer:
        assert self.landscape is not None
        search = self.landscape.searches[operator.index]
        return RecordedProposer(operator, search, self.landscape.clock)


class RecordedProposer:
    """Proposes the next steps and lets the time pass that the search took for them."""

    def __init__(self, operator: Operator, search: RecordedSearch, clock: SimulatedClock) -> None:
        self.operator, self._search, self._clock, self._next = operator, search, clock, 0
        self.counters: dict[str, float] = dict.fromkeys(COUNTERS, 0)
        self.best: Outcome | None = None

    @property
    def exhausted(self) -> bool:
        return self._next >= len(self._search)

    @property
    def settled(self) -> Collection[str]:
        """None: what is played knows no earlier run."""
        return ()

    def propose(self, count: int) -> list[Candidate]:
        """The next `count` steps; fewer at the recording's end."""
        steps = range(self._next, min(self._next + count, len(self._search)))
        self._next = steps.stop
        self.counters["proposed"] += len(steps)
        self._clock.advance(float(np.nansum(self._search.search[steps.start : steps.stop])))
        return [Candidate(self.operator.index, Configuration(0, (step,)), "recorded") for step in steps]

    def borrowed(self, most: int) -> list[Candidate]:
        """A recorded search took nothing from its twins."""
        return []

    def observe(self, outcomes: Sequence[Outcome]) -> None:
        """What came of a step is known already: the best is kept."""
        ran = [outcome for outcome in (self.best, *outcomes) if outcome is not None and outcome.seconds is not None]
        self.best = min(ran, key=lambda outcome: outcome.seconds or 0.0, default=None)

    def state(self) -> State:
        return {"next": self._next}

    def restore(self, state: State) -> None:
        self._next = state["next"]


def _operator(row: dict[str, Any], steps: int) -> Operator:
    sketch = Sketch((Knob("step", "location", tuple((step,) for step in range(steps))),))
    return Operator(**row, sketches=(sketch,), start=(Configuration(0, (0,)),))
