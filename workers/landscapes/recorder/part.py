"""One operator's part of a space: chosen around what a search found, then measured configuration by configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from workers.engine.evaluator.estimate import KEPT_RUNS, SHORTEST_RUN
from workers.engine.methods import Method
from workers.engine.ports import Backend, Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.landscapes import files
from workers.landscapes.curves import CAUSES
from workers.landscapes.landscape import LandscapeError
from workers.landscapes.recorder.folder import space_path
from workers.landscapes.recorder.walls import measured
from workers.landscapes.recorder.watch import Watch
from workers.landscapes.subspace import Subspace, subspace

PROBES = 96
GOOD = 16
SAVE_EVERY = 256
BATCH = 64
"""Configurations measured together, the papers' plan. Whose turn it is does not matter in a grid, and in small batches a
compiler waits for the last program of the other: 1.5 of 2 were at work in batches of 16."""
EVALUATION: tuple[str, dict[str, Any]] = ("fixed", {"runs": 4, "most": KEPT_RUNS, "seconds": 0.04, "reject": 0.0})
"""How spaces are timed: nothing is cut, slow programs run four times, programs under 2 ms twenty times."""


class TimedBackend(Backend, Protocol):
    """A backend that still has the single runs of its last `measure`."""

    def run_times(self) -> Sequence[Sequence[float]]:
        """Seconds of the runs of each candidate of the last `measure`, in order; empty where nothing was timed."""
        ...


@dataclass(frozen=True)
class Program:
    """What measuring a program gave: its cause as an index of CAUSES, single runs in seconds, and seconds on the clock of
    building and of measuring beyond the runs. Whichever of its configurations is asked first pays them."""

    cause: int
    runs: tuple[float, ...]
    build: float
    overhead: float

    @classmethod
    def of(cls, outcome: Outcome, runs: Sequence[float], build: float, measuring: float) -> Program:
        kept = tuple(runs)[:KEPT_RUNS]
        spent = sum(max(run, SHORTEST_RUN) for run in kept)
        return cls(CAUSES.index(outcome.cause), kept, build, max(0.0, measuring - spent))

    @property
    def times(self) -> NDArray[np.float64]:
        """The runs, filled up with nan."""
        return np.asarray([*self.runs, *[np.nan] * (KEPT_RUNS - len(self.runs))])


class Part:
    """One operator's part of a space, as far as it is measured."""

    def __init__(self, backend: TimedBackend, operator: Operator, folder: Path, watch: Watch, where: str) -> None:
        self._backend, self._operator, self._watch, self._where = backend, operator, watch, where
        self._path = space_path(folder, operator.index)
        self._started = self._path.with_name(self._path.name + ".started")
        self._programs: dict[str, Program] = {}

    def measure(self, method: Method, size: int, seed: int) -> bool:
        """False when stopped; the configurations measured so far are kept."""
        probes = min(PROBES, size)
        if self._started.exists():
            found, arrays = files.read(self._started, "space part")
            part, arrays = subspace_of(found), _decoded(arrays)
            self._watch.found(probes + len(arrays["causes"]))
        else:
            good = self._probe(method, probes, seed)
            if good is None:
                return False
            part, arrays = subspace(self._operator, good, size, seed), _empty()
        grid = part.restricted(self._operator).sketches[0].grid()
        self._watch.total -= size - len(grid)
        done, identities = len(arrays["causes"]), [str(name) for name in arrays.pop("identity")]
        rows = {name: list(array) for name, array in arrays.items()}
        for row, identity in enumerate(identities):
            if identity:
                self._backend.remember(self._operator.index, identity)
                times, costs = rows["times"][row], (float(rows[name][row]) for name in ("build", "overhead"))
                runs = tuple(times[np.isfinite(times)].tolist())
                self._programs[identity] = Program(int(rows["causes"][row]), runs, *costs)
        while done < len(grid):
            if not self._watch.wanted():
                self._save(self._started, part, rows, identities)
                return False
            self._batch(part, grid[done : done + BATCH].tolist(), rows, identities)
            step, done = len(identities) - done, len(identities)
            self._watch.advance(step, self._where)
            if done % SAVE_EVERY < step:
                self._save(self._started, part, rows, identities)
        self._save(self._path, part, rows, identities)
        self._started.unlink(missing_ok=True)
        return True

    def _probe(self, method: Method, count: int, seed: int) -> list[Configuration] | None:
        """The best configurations of a search of `count`, best first."""
        proposer = method.make_proposer(self._operator, seed)
        found: list[Outcome] = []
        while len(found) < count and (plan := proposer.propose(min(method.rhythm.plan, count - len(found)))):
            if not self._watch.wanted():
                return None
            outcomes, _ = self._measured(plan)
            proposer.observe(outcomes)
            found += outcomes
            self._watch.advance(len(plan), self._where)
        ranked = sorted((o for o in found if o.seconds is not None), key=lambda o: o.seconds or 0.0)
        if not ranked:
            raise LandscapeError(f"no configuration of {self._operator.name} works; leave it out (--operators)")
        return [outcome.candidate.configuration for outcome in ranked[:GOOD]]

    def _batch(
        self, part: Subspace, choices: list[list[int]], rows: dict[str, list[Any]], identities: list[str]
    ) -> None:
        index = self._operator.index
        outcomes, programs = self._measured([Candidate(index, part.whole(row), "grid") for row in choices])
        for outcome, program in zip(outcomes, programs, strict=True):
            rows["times"].append(program.times)
            rows["causes"].append(program.cause)
            rows["build"].append(program.build)
            rows["overhead"].append(program.overhead)
            identities.append(outcome.identity)

    def _measured(self, plan: Sequence[Candidate]) -> tuple[list[Outcome], list[Program]]:
        """Outcomes, and what each one's program gave when it was measured, now or before."""
        outcomes, walls = measured(self._backend, plan, {})
        found = [
            Program.of(outcome, runs, build, measuring)
            for outcome, runs, (build, measuring) in zip(outcomes, self._backend.run_times(), walls, strict=True)
        ]
        # Of equal programs the one that a worker lowers last is the duplicate, be it the first of the plan.
        for outcome, program in zip(outcomes, found, strict=True):
            if outcome.identity and outcome.cause != "duplicate":
                self._programs[outcome.identity] = program
        return outcomes, [self._programs.get(o.identity, program) for o, program in zip(outcomes, found, strict=True)]

    def _save(self, path: Path, part: Subspace, rows: dict[str, list[Any]], identities: list[str]) -> None:
        first: dict[str, int] = {}
        places = [first.setdefault(identity, row) if identity else -1 for row, identity in enumerate(identities)]
        arrays = {
            "times": files.codes(np.asarray(rows["times"]).reshape(len(identities), KEPT_RUNS)),
            "causes": np.asarray(rows["causes"], dtype=np.uint8),
            "build": files.codes(rows["build"]),
            "overhead": files.codes(rows["overhead"]),
            "first": np.asarray(places, dtype=np.int32),
            "identity": np.asarray(identities, dtype="U32"),
        }
        header = {"key": self._operator.key, "sketch": part.sketch, "kept": part.kept}
        files.write(path, "space part", header, arrays)


def _empty() -> files.Arrays:
    return {
        "times": np.zeros((0, KEPT_RUNS)),
        "causes": np.zeros(0, dtype=np.uint8),
        "build": np.zeros(0),
        "overhead": np.zeros(0),
        "first": np.zeros(0, dtype=np.int32),
        "identity": np.zeros(0, dtype="U32"),
    }


def _decoded(arrays: files.Arrays) -> files.Arrays:
    timed = {name: files.times_of(arrays[name]) for name in ("times", "build", "overhead")}
    return {**arrays, **timed}


def subspace_of(header: dict[str, Any]) -> Subspace:
    return Subspace(header["sketch"], tuple(tuple(kept) for kept in header["kept"]))
