"""The papers' pictures of operators and of what a method sees in them, drawn from a landscape itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.benchmarks import chart
from workers.benchmarks.chart import Line
from workers.benchmarks.methods.arms import SA, SA_AS
from workers.benchmarks.methods.replayed import Source
from workers.engine.belief import PAPER, Belief, Diagnostics, curve_named
from workers.engine.belief.posterior import NOISE
from workers.engine.belief.segments import cuts
from workers.engine.methods import METHODS
from workers.engine.sampler.adaptive import Adaptive
from workers.engine.space import Choices
from workers.landscapes import CurveRecording, RecordedSearch
from workers.landscapes.spaces import Measured

Array = NDArray[np.float64]
Row = Mapping[str, Any]

SHOWN = 12
"""Operators in one picture, those with the most work: as many as there are colours."""
AHEAD = 16.0
"""Configurations a forecast looks ahead: a plan."""
PLACES = 60
KNOWN, CANDIDATES = 160, 256
"""Configurations that a cost model has seen, and those that an explorer finds by it."""
PARTS = 2
FAR = 1.0
"""Differences of run time that are shown, relative to a cluster's median."""


def draw_landscape(source: Source, folder: Path) -> None:
    """Of curves DynaTune's Figures 4, 13 and 19; of a space Chameleon's Figures 5 and 6."""
    folder.mkdir(parents=True, exist_ok=True)
    recording = source.recording
    if isinstance(recording, CurveRecording):
        _optimisation(recording, source.name, folder)
        _belief(recording, source.name, folder)
        return
    parts = sorted(recording.parts, key=lambda part: -part.operator.weight * part.operator.work)
    for part in parts[:PARTS]:
        _clusters(part, f"{source.name}-{part.operator.index}", folder)


def speeds_of(row: Row, search: RecordedSearch) -> Array:
    """Best speed so far in FLOP/s after each candidate, 0 before the first valid one."""
    found: Array = max(row["work"], 1.0) / search.best
    return found


def _optimisation(recording: CurveRecording, name: str, folder: Path) -> None:
    """DynaTune, Figure 4: best speed so far of every operator against configurations."""
    rows = list(zip(recording.header["operators"], recording.searches, strict=True))
    series = []
    for row, searches in sorted(rows, key=lambda pair: -pair[0]["weight"] * pair[0]["work"])[:SHOWN]:
        speeds = speeds_of(row, searches[0])
        steps = np.flatnonzero(np.diff(speeds, prepend=0.0) > 0)
        series.append(Line(row["name"], [(float(i + 1), float(speeds[i]) / 1e9) for i in steps], float(len(speeds))))
    words = ("configurations", "best speed so far, GFLOPS of work")
    chart.lines(series, f"Optimisation curves, {name}", words, folder / f"speeds-{name}.svg", log=(False, True))


def _belief(recording: CurveRecording, name: str, folder: Path) -> None:
    """DynaTune, Figure 13: a curve, its segments, and the paper's fit of each; Figure 19: the chain of the last fit."""
    row, speeds = _told_apart(recording)
    starts = cuts(speeds)
    if not starts:
        return
    peak = max(float(recording.header["peak_flops"]), 1.01 * float(speeds.max()))
    observed = [(float(i + 1), float(speeds[i]) / 1e9) for i in range(len(speeds)) if speeds[i] > 0]
    series = [Line("observed", observed)]
    for start, end in zip(starts, [*starts[1:], len(speeds)], strict=True):
        belief = Belief(np.random.default_rng(0), PAPER)
        belief.observe(speeds[:end], AHEAD, peak)
        series += _fit(belief, start, end)
    title = f"{name}, {row['name']}"
    words = ("configurations", "best speed so far, GFLOPS of work")
    path = folder / f"belief-{name}.svg"
    chart.lines(series, f"Belief of {title}", words, path, log=(False, False), stepped=False)
    _chain(belief.diagnostics(), title, folder / f"chain-{name}.svg")


def _told_apart(recording: CurveRecording) -> tuple[Row, Array]:
    """The operator and search whose last two segments, as in the paper's picture, or else whose only one, rise most often."""

    def worth(speeds: Array) -> tuple[int, int]:
        starts = cuts(speeds)
        levels = [len(np.unique(part)) for part in np.split(speeds, starts)[1:]]
        return (min(levels[-2:]) if len(levels) > 1 else 0, levels[-1] if levels else 0)

    found = [
        (row, speeds_of(row, search))
        for row, searches in zip(recording.header["operators"], recording.searches, strict=True)
        for search in searches
        if len(search)
    ]
    return max(found, key=lambda pair: worth(pair[1]))


def _fit(belief: Belief, start: int, end: int) -> list[Line]:
    """Mean and two spreads of the curves that a segment's fit drew; nothing where nothing was sampled."""
    x = np.unique(np.linspace(1, end - start, PLACES).astype(int)).astype(np.float64)
    drawn = belief.curves(x)
    if drawn is None:
        return []
    mean, spread = drawn.mean(axis=0) / 1e9, drawn.std(axis=0) / 1e9
    edges = (("fit", mean), ("fit, two spreads", mean - 2 * spread), ("fit, two spreads", mean + 2 * spread))
    return [
        Line(name, [(start + float(a), max(float(b), 0.0)) for a, b in zip(x, y, strict=True)]) for name, y in edges
    ]


def _chain(told: Diagnostics, title: str, path: Path) -> None:
    """Every walker's parameters, as shares of the prior's range, against the steps of the chain."""
    if told.trace is None:
        return
    curve = curve_named("log_power")
    lower, upper = np.append(curve.lower, NOISE[0]), np.append(curve.upper, NOISE[1])
    shares = (told.trace - lower) / (upper - lower)
    every = PAPER.steps / len(shares)
    series = [
        Line(parameter, [(every * step, float(shares[step, walker, i])) for step in range(len(shares))])
        for i, parameter in enumerate(told.parameters)
        for walker in range(shares.shape[1])
    ]
    accepted = "" if told.acceptance is None else f", acceptance {told.acceptance:.2f}"
    least = "at least " if told.at_least else ""
    length = "" if told.autocorrelation is None else f", autocorrelation {least}{told.autocorrelation:.0f} steps"
    words = ("steps", "share of the prior's range")
    chart.lines(series, f"Chain of {title}{accepted}{length}", words, path, log=(False, False), stepped=False)


def _clusters(part: Measured, name: str, folder: Path) -> None:
    """Chameleon, Figure 5: candidates of annealing over trees, in the plane of their two main directions, a colour a
    cluster; Figure 6: how far run times are from the median of their cluster, and from that of all candidates."""
    candidates = _candidates(part)
    if len(candidates) < 2:
        return
    sizes = part.operator.sketches[0].sizes
    labels = Adaptive(**METHODS[SA_AS].parameters["sampler"]).labels(
        part.operator.sketches[0], candidates, len(candidates)
    )
    places = _plane(candidates / np.maximum(sizes - 1, 1))
    series = [
        Line(f"cluster {cluster + 1}", [(float(x), float(y)) for x, y in places[labels == cluster]])
        for cluster in np.unique(labels)
    ]
    title, words = f"{name}, {part.operator.name}", ("first direction", "second direction")
    chart.dots(series, f"Clusters of candidates, {title}", words, folder / f"clusters-{name}.svg")
    seconds = part.true[_rows(part, candidates)]
    grouped = [seconds[labels == cluster] for cluster in np.unique(labels)]
    lines = [Line("within a cluster", _cumulative(grouped)), Line("of all candidates", _cumulative([seconds]))]
    words = ("difference from the median run time", "share of the configurations")
    path = folder / f"differences-{name}.svg"
    chart.lines(lines, f"Differences of run time, {title}", words, path, log=(False, False), stepped=False)


def _candidates(part: Measured) -> Choices:
    """What the papers' annealing finds by trees that have seen `KNOWN` random configurations."""
    baseline, operator, sketch = METHODS[SA], part.operator, part.operator.sketches[0]
    rng = np.random.default_rng(0)
    seen = sketch.unvisited(rng, min(KNOWN, sketch.size // 2), set())
    model = baseline.make_cost_model(operator, 0)
    model.fit(sketch.features(seen), operator.work / part.true[_rows(part, seen)])
    explorer = baseline.make_explorer(operator, rng)
    found, _ = explorer.explore(
        sketch,
        lambda choices: model.predict(sketch.features(choices)).log_mean,
        min(CANDIDATES, sketch.size // 2),
        set(map(tuple, seen.tolist())),
    )
    return found


def _rows(part: Measured, choices: Choices) -> NDArray[np.intp]:
    """Rows of the grid, (n,), of choices (n, k)."""
    sizes = tuple(int(size) for size in part.operator.sketches[0].sizes)
    return np.asarray(np.ravel_multi_index(tuple(choices.T), sizes), dtype=np.intp)


def _plane(points: Array) -> Array:
    """Points (n, k) along the two directions in which they differ most, from 0 on, as (n, 2)."""
    _, _, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    placed = points @ directions[:2].T
    if placed.shape[1] < 2:
        placed = np.column_stack([placed, np.zeros(len(placed))])
    found: Array = placed - placed.min(axis=0)
    return found


def _cumulative(groups: Sequence[Array]) -> list[tuple[float, float]]:
    """(difference from its group's median, share of all that are no further), of programs that work."""
    working = [group[np.isfinite(group)] for group in groups]
    away = [np.abs(group / np.median(group) - 1) for group in working if len(group)]
    if not away:
        return []
    flat = np.sort(np.concatenate(away))
    shares = np.arange(1, len(flat) + 1) / len(flat)
    return [(float(x), float(y)) for x, y in zip(flat, shares, strict=True) if x <= FAR]
