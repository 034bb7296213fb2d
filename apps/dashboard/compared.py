"""Runs of one network on one chart: latency against tuning time, runs that differ only in their seed as one line."""

from __future__ import annotations

import json
import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from statistics import median

from apps.dashboard import words
from apps.dashboard.figures import budget, curves
from apps.dashboard.methods import titled
from apps.dashboard.plot import Curve, Plot, apart, stepped
from apps.tuning.live import thinned
from apps.tuning.models import TuningRun

POINTS = 300
LINES = 8
"""As many as there are colours: the latest."""


@dataclass(frozen=True)
class Line:
    """Runs that were asked for alike. `points` and `band` (lowest and highest of several) are of an SVG's."""

    title: str
    budget: str
    runs: Sequence[TuningRun]
    latency: float
    clock: float
    points: str
    band: str
    label: float


@dataclass(frozen=True)
class Picture:
    """Lines in the order of their runs, the latest of so many `settings`, and where things are."""

    lines: Sequence[Line]
    settings: int
    plot: Plot


def picture(runs: Iterable[TuningRun]) -> Picture | None:
    """None without a run that has a latency; runs come latest first."""
    measured = [run for run in runs if run.latency is not None]
    drawn = curves(measured, POINTS)
    groups: defaultdict[str, list[TuningRun]] = defaultdict(list)
    for run in measured:
        if drawn[run.pk]:
            groups[_alike(run)].append(run)
    several = [(alike, [drawn[run.pk] for run in alike]) for alike in islice(groups.values(), LINES)]
    if not several:
        return None
    end = max(curve[-1][0] for _, found in several for curve in found)
    plot = Plot.around(end, (value for _, found in several for curve in found for _, value in curve))
    lines = [_line(alike, found, plot) for alike, found in several]
    labels = apart([line.label for line in lines], plot.bottom)
    placed = [replace(line, label=label) for line, label in zip(lines, labels, strict=True)]
    return Picture(placed, len(groups), plot)


def _alike(run: TuningRun) -> str:
    """What was asked for, and of what machine, as it was then."""
    limits = [run.budget_seconds, run.budget_trials, run.budget_latency, run.budget_gain]
    asked = [run.method, run.parts, run.operators_asked, run.layout, run.shapes, run.reuse, limits]
    return json.dumps([*asked, str(run.target_id), run.machine["tvm"], run.machine["threads"]], sort_keys=True)


def _line(runs: Sequence[TuningRun], found: Sequence[Curve], plot: Plot) -> Line:
    begun = max(curve[0][0] for curve in found)
    # A run that used up what it was given keeps its last value; what another would have found later nobody knows.
    broken = [curve[-1][0] for run, curve in zip(runs, found, strict=True) if run.finished_reason in ("", "stopped")]
    end = max(begun, min(broken, default=math.inf))
    times = sorted({clock for curve in found for clock, _ in curve if begun <= clock <= end})
    rows = [(at, [_at(curve, at) for curve in found]) for at in thinned(times, 2 * POINTS)]
    middle = [(at, median(values)) for at, values in rows]
    band = ""
    if len(found) > 1:
        lower, upper = [(at, min(values)) for at, values in rows], [(at, max(values)) for at, values in rows]
        band = plot.path(stepped(upper)) + " " + plot.path(stepped(lower)[::-1])
    latency = median(run.latency or 0.0 for run in runs)
    return Line(
        title=", ".join(filter(None, [titled(runs[0].method, runs[0].parts), words.only(runs[0])])),
        budget=budget(runs[0]),
        runs=runs,
        latency=latency,
        clock=max(run.clock for run in runs),
        points=plot.path(stepped(middle)),
        band=band,
        label=plot.y(middle[-1][1]),
    )


def _at(curve: Curve, clock: float) -> float:
    """The best so far then; a step line keeps its last value."""
    return curve[max(0, bisect(curve, clock, key=itemgetter(0)) - 1)][1]
