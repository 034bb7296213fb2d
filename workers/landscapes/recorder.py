"""Recording landscapes from any backend, part by part: what is on the disk is not measured again.

A part is one operator (of one seed), written when it is whole; a part of a space also every few hundred
configurations. `make` gives a fresh backend: a program counts as known only within one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from workers.engine.evaluator.adaptive import SHORTEST_RUN
from workers.engine.evaluator.estimate import KEPT_RUNS
from workers.engine.methods import Method
from workers.engine.ports import Backend, Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.landscapes import files
from workers.landscapes.curves import CAUSES, CurveRecording, Search
from workers.landscapes.landscape import LandscapeError
from workers.landscapes.spaces import Measured, SpaceRecording
from workers.landscapes.subspace import Subspace, subspace

AGAIN = 3
PROBES = 96
GOOD = 16
SAVE_EVERY = 256
EVALUATION: tuple[str, dict[str, Any]] = ("fixed", {"runs": 4, "most": KEPT_RUNS, "seconds": 0.04, "reject": 0.0})
"""How spaces are timed: nothing is cut, slow programs run four times, programs under 2 ms twenty times."""


class TimedBackend(Backend, Protocol):
    """A backend that still has the single runs of its last `measure`."""

    def run_times(self) -> Sequence[Sequence[float]]:
        """Seconds of the runs of each candidate of the last `measure`, in order; empty where nothing was timed."""
        ...


@dataclass
class Watch:
    """Who looks on: `told(text)` progress, `wanted()` False to stop, `now()` seconds."""

    told: Callable[[str], None]
    wanted: Callable[[], bool]
    now: Callable[[], float]
    total: int = 0
    done: int = 0
    _began: float = field(default=0.0)
    _measured: int = 0

    def start(self, total: int, done: int) -> None:
        self.total, self.done, self._began, self._measured = total, done, self.now(), 0

    def advance(self, count: int, where: str) -> None:
        self.done += count
        self._measured += count
        pace = self._measured / max(self.now() - self._began, 1e-9)
        left = max(0, self.total - self.done) / max(pace, 1e-9)
        self.told(f"{where}: {self.done} of {self.total} configurations, {pace:.1f}/s, {left / 60:.0f} min left")


def record_curves(
    make: Callable[[], Backend], method: Method, seeds: int, trials: int, folder: Path, watch: Watch
) -> bool:
    """`seeds` inner searches of `trials` candidates for every operator. False when stopped; what is whole is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    watch.start(0, 0)
    for seed in range(seeds):
        if _whole(folder, seed):
            continue
        backend = make()
        try:
            operators = backend.operators()
            _same_network(folder, operators)
            paths = [_curve_path(folder, o.index, seed) for o in operators]
            done = sum(p.exists() for s in range(seeds) for o in operators for p in [_curve_path(folder, o.index, s)])
            watch.start(len(operators) * seeds * trials, done * trials)
            for operator, path in zip(operators, paths, strict=True):
                if path.exists():
                    continue
                where = f"seed {seed + 1} of {seeds}, operator {operator.index + 1} of {len(operators)}"
                search = _search(backend, method, operator, seed, trials, watch, where)
                if search is None:
                    return False
                files.write(path, "curve part", {"key": operator.key}, search.arrays())
                watch.total -= trials - len(search)  # a small space is used up before
        finally:
            backend.close()
    return True


def curves_of(folder: Path, seeds: int, header: dict[str, Any]) -> CurveRecording:
    """What `record_curves` left in `folder`."""
    operators, found = _network(folder)
    searches = tuple(
        tuple(
            Search.of_arrays(files.read(_curve_path(folder, row["index"], seed), "curve part")[1])
            for seed in range(seeds)
        )
        for row in operators
    )
    return CurveRecording({**header, "operators": operators, "fingerprint": found}, searches)


def record_spaces(
    make: Callable[[], TimedBackend], method: Method, count: int, size: int, folder: Path, watch: Watch, seed: int = 0
) -> tuple[Operator, ...] | None:
    """Parts of at most `size` configurations of the `count` largest operators. All operators; None when stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    backend = make()
    try:
        found = tuple(backend.operators())
        _same_network(folder, found)
        chosen = largest(found, count, size)
        done = sum(_space_path(folder, o.index).exists() for o in chosen)
        each = size + min(PROBES, size)
        watch.start(len(chosen) * each, done * each)
        for place, operator in enumerate(chosen):
            where = f"operator {place + 1} of {len(chosen)} ({operator.name})"
            if not _space_path(folder, operator.index).exists():
                part = _Part(backend, operator, folder, watch, where)
                if not part.measure(method, size, seed):
                    return None
        return found
    finally:
        backend.close()


def spaces_of(
    folder: Path, operators: Sequence[Operator], count: int, size: int, header: dict[str, Any]
) -> SpaceRecording:
    """What `record_spaces` left in `folder`; the operators are numbered anew, from 0."""
    parts = []
    for place, operator in enumerate(largest(operators, count, size)):
        found, arrays = files.read(_space_path(folder, operator.index), "space part")
        parts.append(Measured.of_arrays(replace(_part(found).restricted(operator), index=place), arrays))
    return SpaceRecording({**header, "fingerprint": files.fingerprint(operators)}, tuple(parts))


def largest(operators: Sequence[Operator], count: int, size: int) -> list[Operator]:
    """The `count` operators with the most work among those with arithmetic and at least `size` configurations."""
    able = [o for o in operators if o.flops > 0 and o.size >= size]
    if not able:
        raise LandscapeError(
            f"no operator has arithmetic and {size} configurations; take another network or fewer (--configurations)"
        )
    return sorted(sorted(able, key=lambda o: -o.weight * o.work)[:count], key=lambda o: o.index)


def _search(
    backend: Backend, method: Method, operator: Operator, seed: int, trials: int, watch: Watch, where: str
) -> Search | None:
    """One inner search; None when stopped."""
    proposer, best = method.make_proposer(operator, seed), None
    rows: list[list[float]] = []
    while len(rows) < trials:
        if not watch.wanted():
            return None
        began = watch.now()
        plan = proposer.propose(min(method.rhythm.plan, trials - len(rows)))
        if not plan:
            break
        searching = watch.now() - began
        outcomes, walls = _measured(backend, plan, {} if best is None else {operator.index: best})
        began = watch.now()
        proposer.observe(outcomes)
        searching += watch.now() - began
        for outcome, (build, measure) in zip(outcomes, walls, strict=True):
            seconds = outcome.seconds if outcome.seconds is not None else float("nan")
            rows.append([seconds, build, measure, searching / len(plan), CAUSES.index(outcome.cause)])
        best = proposer.best.seconds if proposer.best is not None else None
        watch.advance(len(plan), where)
    again = [] if proposer.best is None else _again(backend, proposer.best)
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), 5)
    return Search(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4].astype(np.uint8), np.asarray(again))


def _again(backend: Backend, best: Outcome) -> list[float]:
    """The best program's time measured anew: what the noise is, and the luck of the winner."""
    asked = best.candidate
    repeats = [Candidate(asked.operator, asked.configuration, asked.origin, at) for at in range(1, AGAIN + 1)]
    return [outcome.seconds for outcome in backend.measure(repeats, {}) if outcome.seconds is not None]


def _measured(
    backend: Backend, plan: Sequence[Candidate], incumbents: dict[int, float]
) -> tuple[list[Outcome], list[tuple[float, float]]]:
    """Outcomes, and what each took on the wall's clock to apply and build, and to measure.

    Builds run side by side: a batch's wall time is shared out in proportion to what each candidate took.
    """
    before = backend.spent()
    outcomes = backend.measure(plan, incumbents)
    after = backend.spent()
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    building = spent.get("build", 0.0) + spent.get("apply", 0.0)
    builds = np.asarray([outcome.build_seconds + 0.01 for outcome in outcomes])
    measures = np.asarray([outcome.measure_seconds + (1e-3 if outcome.identity else 0.0) for outcome in outcomes])
    walls = np.stack(
        [building * builds / builds.sum(), spent.get("measure", 0.0) * measures / max(measures.sum(), 1e-9)]
    )
    return outcomes, [(float(build), float(measure)) for build, measure in walls.T]


class _Part:
    """One operator's part of a space, as far as it is measured."""

    def __init__(self, backend: TimedBackend, operator: Operator, folder: Path, watch: Watch, where: str) -> None:
        self._backend, self._operator, self._watch, self._where = backend, operator, watch, where
        self._path = _space_path(folder, operator.index)
        self._started = self._path.with_name(self._path.name + ".started")
        self._programs: dict[str, tuple[int, list[float]]] = {}

    def measure(self, method: Method, size: int, seed: int) -> bool:
        """False when stopped; the configurations measured so far are kept."""
        if self._started.exists():
            found, arrays = files.read(self._started, "space part")
            part, arrays = _part(found), _decoded(arrays)
        else:
            good = self._probe(method, min(PROBES, size), seed)
            if good is None:
                return False
            part, arrays = subspace(self._operator, good, size, seed), _empty()
        grid = part.restricted(self._operator).sketches[0].grid()
        done, identities = len(arrays["causes"]), [str(name) for name in arrays.pop("identity")]
        rows = {name: list(array) for name, array in arrays.items()}
        for row, identity in enumerate(identities):
            if identity:
                self._backend.remember(self._operator.index, identity)
                known = rows["times"][row]
                self._programs.setdefault(identity, (int(arrays["causes"][row]), known[np.isfinite(known)].tolist()))
        self._watch.advance(done, self._where)
        while done < len(grid):
            if not self._watch.wanted():
                self._save(self._started, part, rows, identities)
                return False
            self._batch(part, grid[done : done + method.rhythm.plan].tolist(), rows, identities)
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
            outcomes = self._backend.measure(plan, {})
            self._keep(outcomes)
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
        plan = [Candidate(index, part.whole(row), "grid") for row in choices]
        outcomes, walls = _measured(self._backend, plan, {})
        self._keep(outcomes)
        for outcome, (build, measure) in zip(outcomes, walls, strict=True):
            cause, times = CAUSES.index(outcome.cause), [float("nan")] * KEPT_RUNS
            if outcome.identity in self._programs:
                cause, runs = self._programs[outcome.identity]
                times[: len(runs)] = runs
            spent = float(np.nansum(np.maximum(times, SHORTEST_RUN)))
            rows["times"].append(np.asarray(times))
            rows["causes"].append(cause)
            # A program known from before took no building: what its first occurrence took is not known here.
            rows["build"].append(build if outcome.cause != "duplicate" else float("nan"))
            rows["overhead"].append(max(0.0, measure - spent))
            identities.append(outcome.identity)

    def _keep(self, outcomes: Sequence[Outcome]) -> None:
        """Runs of programs that the backend will call duplicates from now on."""
        for outcome, runs in zip(outcomes, self._backend.run_times(), strict=True):
            if outcome.identity and outcome.cause != "duplicate":
                self._programs[outcome.identity] = (CAUSES.index(outcome.cause), list(runs)[:KEPT_RUNS])

    def _save(self, path: Path, part: Subspace, rows: dict[str, list[Any]], identities: list[str]) -> None:
        first: dict[str, int] = {}
        places = [first.setdefault(identity, row) if identity else -1 for row, identity in enumerate(identities)]
        build = np.asarray(rows["build"], dtype=np.float64)
        for row, place in enumerate(places):  # every occurrence costs what building the program costs
            if np.isnan(build[row]) and place >= 0:
                build[row] = build[place]
        build = np.where(np.isnan(build), np.nanmedian(build) if np.isfinite(build).any() else 0.0, build)
        arrays = {
            "times": files.codes(np.asarray(rows["times"]).reshape(len(identities), KEPT_RUNS)),
            "causes": np.asarray(rows["causes"], dtype=np.uint8),
            "build": files.codes(build),
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


def _part(header: dict[str, Any]) -> Subspace:
    return Subspace(header["sketch"], tuple(tuple(kept) for kept in header["kept"]))


def _curve_path(folder: Path, operator: int, seed: int) -> Path:
    return folder / f"curve-{operator}-{seed}.npz"


def _space_path(folder: Path, operator: int) -> Path:
    return folder / f"space-{operator}.npz"


def _network_path(folder: Path) -> Path:
    return folder / "network.npz"


def _same_network(folder: Path, operators: Sequence[Operator]) -> None:
    """Notes whose parts the folder holds; LandscapeError when they are another network's."""
    path, mine = _network_path(folder), files.fingerprint(operators)
    if not path.exists():
        rows = [files.described(operator) for operator in operators]
        files.write(path, "network", {"fingerprint": mine, "operators": rows}, {})
    elif (kept := files.read(path, "network")[0]["fingerprint"]) != mine:
        raise LandscapeError(
            f"{folder} was begun with other operators or spaces ({kept}, now {mine}); name another directory"
        )


def _network(folder: Path) -> tuple[list[dict[str, Any]], str]:
    header, _ = files.read(_network_path(folder), "network")
    return header["operators"], header["fingerprint"]


def _whole(folder: Path, seed: int) -> bool:
    if not _network_path(folder).exists():
        return False
    return all(_curve_path(folder, row["index"], seed).exists() for row in _network(folder)[0])
