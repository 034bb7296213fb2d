"""Inner searches, one an operator and seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workers.engine.methods import Method
from workers.engine.ports import Backend, Candidate, Outcome
from workers.engine.space import Operator
from workers.landscapes import files
from workers.landscapes.curves import CAUSES, CurveRecording, RecordedSearch, Times
from workers.landscapes.recorder.folder import curve_path, network, same_network, whole
from workers.landscapes.recorder.walls import measured
from workers.landscapes.recorder.watch import Watch

AGAIN = 3
"""Times that the best program is measured at the end, after the once that every record is (`_believed`)."""


def record_curves(
    make: Callable[[], Backend], method: Method, seeds: int, trials: int, folder: Path, watch: Watch
) -> bool:
    """`seeds` inner searches of `trials` candidates for every operator. False when stopped; what is whole is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    watch.start(0, 0)
    for seed in range(seeds):
        if whole(folder, seed):
            continue
        backend = make()
        try:
            operators = backend.operators()
            same_network(folder, operators)
            paths = [curve_path(folder, o.index, seed) for o in operators]
            most = [min(trials, operator.size) for operator in operators]  # a small space is used up before
            every = [(operator.index, number) for operator in operators for number in range(seeds)]
            done = sum(most[index] for index, number in every if curve_path(folder, index, number).exists())
            watch.start(seeds * sum(most), done)
            for operator, path in zip(operators, paths, strict=True):
                if path.exists():
                    continue
                where = f"seed {seed + 1} of {seeds}, operator {operator.index + 1} of {len(operators)}"
                search = _search(backend, method, operator, seed, trials, watch, where)
                if search is None:
                    return False
                files.write(path, "curve part", {"key": operator.key}, search.arrays())
                watch.total -= most[operator.index] - len(search)  # what its sketches gave up
        finally:
            backend.close()
    return True


def curves_of(folder: Path, seeds: int, header: dict[str, Any]) -> CurveRecording:
    """What `record_curves` left in `folder`."""
    operators, found = network(folder)
    searches = tuple(
        tuple(
            RecordedSearch.of_arrays(files.read(curve_path(folder, row["index"], seed), "curve part")[1])
            for seed in range(seeds)
        )
        for row in operators
    )
    return CurveRecording({**header, "operators": operators, "fingerprint": found}, searches)


def _search(
    backend: Backend, method: Method, operator: Operator, seed: int, trials: int, watch: Watch, where: str
) -> RecordedSearch | None:
    """One inner search; None when stopped."""
    proposer, best = method.make_proposer(operator, seed), None
    rows: list[list[float]] = []
    asked: list[Candidate] = []
    while len(rows) < trials:
        if not watch.wanted():
            return None
        began = watch.now()
        plan = proposer.propose(min(method.rhythm.plan, trials - len(rows)))
        if not plan:
            break
        searching = watch.now() - began
        outcomes, walls = measured(backend, plan, {} if best is None else {operator.index: best})
        began = watch.now()
        proposer.observe(outcomes)
        searching += watch.now() - began
        asked += plan
        for outcome, (build, measure) in zip(outcomes, walls, strict=True):
            seconds = outcome.seconds if outcome.seconds is not None else float("nan")
            rows.append([seconds, build, measure, searching / len(plan), CAUSES.index(outcome.cause)])
        best = proposer.best.seconds if proposer.best is not None else None
        watch.advance(len(plan), where)
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), 5)
    believed = _believed(backend, asked, table[:, 0])
    again = [] if np.isnan(believed).all() else _again(backend, asked[int(np.nanargmin(believed))])
    return RecordedSearch(
        believed, table[:, 1], table[:, 2], table[:, 3], table[:, 4].astype(np.uint8), np.asarray(again)
    )


def _believed(backend: Backend, asked: Sequence[Candidate], seconds: Times) -> Times:
    """Times (n,), of which each that was the best so far is of a second measurement after the search, where that gave one. The
    best of hundreds is the luckiest too: products whose weights come from memory told 2.4 ms in some second and take 4."""
    believed, known = seconds.copy(), set[int]()
    while True:
        best = np.minimum.accumulate(np.where(np.isnan(believed), np.inf, believed))
        records = set(np.flatnonzero(best < np.append(np.inf, best[:-1])).tolist()) - known
        if not records:
            return believed
        known |= records
        places = sorted(records)
        for place, outcome in zip(places, _repeated(backend, [asked[i] for i in places], 1), strict=True):
            if outcome.seconds is not None:
                believed[place] = outcome.seconds


def _again(backend: Backend, best: Candidate) -> list[float]:
    """Its time measured anew: what the noise is, and what luck is left of the winner's."""
    found = [_repeated(backend, [best], at)[0].seconds for at in range(2, AGAIN + 2)]
    return [seconds for seconds in found if seconds is not None]


def _repeated(backend: Backend, asked: Sequence[Candidate], at: int) -> list[Outcome]:
    """Of the candidates, measured for the repeat numbered so."""
    return backend.measure([Candidate(one.operator, one.configuration, one.origin, at) for one in asked], {})
