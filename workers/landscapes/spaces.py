"""Closed parts of design spaces, measured whole: what explorers, samplers, cost models and evaluators are compared on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.evaluator.estimate import LONGEST_TIMING, TURNS, of_turns
from workers.engine.evaluator.timing import timed_runs
from workers.engine.machine import Machine, vector_lanes, vector_registers
from workers.engine.ports import Candidate, Evaluator, Outcome
from workers.engine.space import STRUCTURES, Configuration, Knob, Operator, Sketch
from workers.landscapes import files
from workers.landscapes.clock import SimulatedClock
from workers.landscapes.curves import CAUSES
from workers.landscapes.landscape import APPLY_SECONDS, Landscape

ARRAYS = ("times", "first", "causes", "build", "overhead")
Grid = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Measured:
    """One operator's part, whole. Rows in the order of `Sketch.grid`, n of them.

    `times` (n, r): individual runs in seconds, nan where fewer were made; `first` (n,): the first row with the same
    program, -1 without one; `causes` (n,) as indexes of CAUSES; `build` (n,) and `overhead` (n,): seconds on the clock
    of applying and building, and of measuring beyond the runs.
    """

    operator: Operator
    times: NDArray[np.float64]
    first: NDArray[np.int32]
    causes: NDArray[np.uint8]
    build: NDArray[np.float64]
    overhead: NDArray[np.float64]

    @property
    def true(self) -> NDArray[np.float64]:
        """Median of the runs of each row; inf where there are none. Shape (n,)."""
        known = np.isfinite(self.times).any(axis=1)
        found = np.full(len(self.times), np.inf)
        found[known] = np.nanmedian(self.times[known], axis=1)
        return found

    def row(self, configuration: Configuration) -> int:
        """Of a configuration of the part."""
        sizes = self.operator.sketches[0].sizes
        return int(np.ravel_multi_index(configuration.choices, tuple(int(n) for n in sizes))) if len(sizes) else 0

    def arrays(self) -> files.Arrays:
        stored: files.Arrays = {name: files.codes(getattr(self, name)) for name in ("times", "build", "overhead")}
        return {**stored, "first": self.first, "causes": self.causes}

    @classmethod
    def of_arrays(cls, operator: Operator, arrays: Grid) -> Measured:
        times = {name: files.times_of(arrays[name]) for name in ("times", "build", "overhead")}
        return cls(operator, **times, first=arrays["first"], causes=arrays["causes"])


@dataclass(frozen=True)
class SpaceRecording:
    """`header` as that of a `CurveRecording`; its operators have their knobs too."""

    header: dict[str, Any]
    parts: tuple[Measured, ...]

    @property
    def noise(self) -> float:
        """Median over programs of the standard deviation of single runs relative to their median."""
        deep = [part.times[np.isfinite(part.times).sum(axis=1) > 2] for part in self.parts]
        found = [np.nanstd(times, axis=1) / np.nanmedian(times, axis=1) for times in deep if len(times)]
        return float(np.median(np.concatenate(found))) if found else 0.0

    def write(self, path: Path) -> None:
        arrays = {f"{name}_{i}": array for i, part in enumerate(self.parts) for name, array in part.arrays().items()}
        operators = [_row(part.operator) for part in self.parts]
        files.write(path, "space", {**self.header, "operators": operators}, arrays)

    @classmethod
    def read(cls, path: Path) -> SpaceRecording:
        header, arrays = files.read(path, "space")
        machine = _machine(header)
        parts = tuple(
            Measured.of_arrays(_operator(row, machine), {name: arrays[f"{name}_{i}"] for name in ARRAYS})
            for i, row in enumerate(header["operators"])
        )
        return cls(header, parts)


class SpaceLandscape(Landscape):
    """Answers every configuration of the parts. The evaluator does its work on runs drawn from the recorded ones.

    A measurement first meets the recorded runs in a random order and, when it asks for more, draws again with
    replacement; which, follows from `seed`, the program and the round alone.
    """

    def __init__(self, recording: SpaceRecording, clock: SimulatedClock, evaluator: Evaluator, seed: int) -> None:
        super().__init__([part.operator for part in recording.parts], clock)
        self._parts, self._evaluator, self._seed = recording.parts, evaluator, seed
        self._true = [part.true for part in recording.parts]

    def true_seconds(self, operator: int, configuration: Configuration) -> float:
        """The program's time over all recorded runs: free of the luck of one measurement."""
        return float(self._true[operator][self._parts[operator].row(configuration)])

    def best(self, operator: int) -> float:
        """The fastest true time of the part, in seconds."""
        return float(self._true[operator].min())

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        """See `Landscape`."""
        part = self._parts[candidate.operator]
        row = part.row(candidate.configuration)
        cause, first = CAUSES[int(part.causes[row])], int(part.first[row])
        identity = "" if first < 0 else f"{candidate.operator}-{first}"
        # The landscape charges applying by itself, for duplicates too; the recorded build has it inside.
        build = max(0.0, float(np.nan_to_num(part.build[row])) - APPLY_SECONDS)
        overhead = float(np.nan_to_num(part.overhead[row]))
        if cause:
            return Outcome(
                candidate, candidate.configuration, identity, None, cause=cause,
                build_seconds=build, measure_seconds=overhead,
            )  # fmt: skip
        luck = np.random.default_rng([self._seed, candidate.operator, first, candidate.round])
        draws = Draws(part.times[row], luck, self._evaluator.shortest)
        times, figures = list[float](), []
        for _ in range(TURNS if candidate.in_turns else 1):
            draws.left = LONGEST_TIMING
            turn, stopped = timed_runs(
                self._evaluator, None if candidate.in_turns else incumbent, draws.runs, lambda: draws.left
            )
            figures.append(self._evaluator.estimate(turn))
            times += turn
        seconds, spread = of_turns(figures)
        return Outcome(
            candidate,
            candidate.configuration,
            identity,
            seconds,
            spread,
            len(times),
            stopped,
            build_seconds=build,
            measure_seconds=overhead + draws.spent,
        )


class Draws:
    """Runs of one program, drawn from the recorded ones, each of `shortest` seconds at least; `left` is what a measuring
    process would still give it, and `spent` what all took, in s."""

    def __init__(self, recorded: NDArray[np.float64], rng: np.random.Generator, shortest: float) -> None:
        self._runs, self._rng = rng.permutation(recorded[np.isfinite(recorded)]), rng
        self._shortest, self._made = shortest, 0
        self.left, self.spent = LONGEST_TIMING, 0.0

    def runs(self, count: int) -> list[float]:
        """Seconds of `count` more: each recorded one once, then any of them."""
        fresh = self._runs[self._made : self._made + count]
        more = [*fresh.tolist(), *self._rng.choice(self._runs, count - len(fresh)).tolist()]
        self._made += count
        took = sum(max(run, self._shortest) for run in more)
        self.left, self.spent = self.left - took, self.spent + took
        return more


def _row(operator: Operator) -> dict[str, Any]:
    (sketch,) = operator.sketches
    knobs = [[knob.name, knob.kind, knob.options] for knob in sketch.knobs]
    start = list(operator.start[0].choices)
    return {**files.described(operator), "knobs": knobs, "structures": sketch.structures, "start": start}


def _machine(header: dict[str, Any]) -> Machine | None:
    """By what its recording says of the processor; None where nobody measured on one."""
    if not (flags := header["hardware"].get("flags")):
        return None
    return Machine(vector_lanes(flags), vector_registers(flags), header["threads"])


def _operator(row: dict[str, Any], machine: Machine | None) -> Operator:
    knobs = tuple(Knob(name, kind, tuple(tuple(o) for o in options)) for name, kind, options in row["knobs"])
    sketch = Sketch(knobs, structures=tuple(row.get("structures", STRUCTURES)))
    plain = {name: value for name, value in row.items() if name not in ("knobs", "structures", "start")}
    return Operator(**plain, sketches=(sketch,), start=(Configuration(0, tuple(row["start"])),), machine=machine)
