"""Runs of one network on one chart: latency against tuning time, runs that differ only in their seed as one line."""

from __future__ import annotations

import json
import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import itemgetter
from statistics import median

from apps.dashboard import humans
from apps.dashboard.figures import curves
from apps.dashboard.methods import TITLES
from apps.tuning.live import thinned
from apps.tuning.models import TuningRun

WIDTH, HEIGHT = 960, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 250, 12, 28
POINTS = 300
LINES = 8
"""As many as there are colours: the latest."""
BETWEEN = 16
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)

Curve = Sequence[tuple[float, float]]


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

    @property
    def seeds(self) -> str:
        return f"{len(self.runs)} seeds" if len(self.runs) > 1 else f"seed {self.runs[0].seed}"


@dataclass(frozen=True)
class Picture:
    """Ticks are (place, words)."""

    lines: Sequence[Line]
    times: Sequence[tuple[float, str]]
    latencies: Sequence[tuple[float, str]]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM


def picture(runs: Iterable[TuningRun]) -> Picture | None:
    """None without a run that has a latency; runs come latest first."""
    measured = [run for run in runs if run.latency is not None]
    drawn = curves(measured, POINTS)
    groups: defaultdict[str, list[TuningRun]] = defaultdict(list)
    for run in measured:
        if drawn[run.pk]:
            groups[_alike(run)].append(run)
    several = [(alike, [drawn[run.pk] for run in alike]) for alike in list(groups.values())[:LINES]]
    if not several:
        return None
    end = max(curve[-1][0] for _, found in several for curve in found)
    values = [value for _, found in several for curve in found for _, value in curve]
    scale = _Scale(end, min(values) / 1.03, max(values) * 1.03)
    lines = [_line(alike, found, scale) for alike, found in several]
    return Picture(_apart(lines), scale.times(), scale.latencies())


def _alike(run: TuningRun) -> str:
    """What was asked for, and of what machine, as it was then."""
    limits = [run.budget_seconds, run.budget_trials, run.budget_latency]
    asked = [run.method, run.parts, run.operators_asked, run.layout, run.shapes, run.reuse, limits]
    return json.dumps([*asked, str(run.target_id), run.machine["tvm"], run.machine["threads"]], sort_keys=True)


class _Scale:
    """From seconds of tuning and seconds of latency, this on a logarithmic scale, to places."""

    def __init__(self, end: float, low: float, high: float) -> None:
        self._end, self._low, self._high = end, low, high

    def x(self, clock: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * clock / self._end

    def y(self, latency: float) -> float:
        share = math.log(self._high / latency) / math.log(self._high / self._low)
        return TOP + (HEIGHT - TOP - BOTTOM) * share

    def times(self) -> list[tuple[float, str]]:
        step = next((size for size in _STEPS if self._end / size <= 7), 86400 * math.ceil(self._end / 86400 / 7))
        return [(self.x(at), humans.duration(at) if at else "0") for at in range(0, int(self._end) + 1, step)]

    def latencies(self) -> list[tuple[float, str]]:
        tens = range(math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1)
        for digits in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1,)):
            found = [digit * 10.0**power for power in tens for digit in digits]
            found = [value for value in found if self._low <= value <= self._high]
            if 2 <= len(found) <= 7:
                break
        else:
            found = [self._low, self._high]
        return [(self.y(value), humans.latency(value)) for value in found]


def _line(runs: Sequence[TuningRun], found: Sequence[Curve], scale: _Scale) -> Line:
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
        band = _path(_stepped(upper), scale) + " " + _path(_stepped(lower)[::-1], scale)
    latency = median(run.latency or 0.0 for run in runs)
    return Line(
        title=TITLES.get(runs[0].method, runs[0].method),
        budget=_budget(runs[0]),
        runs=runs,
        latency=latency,
        clock=max(run.clock for run in runs),
        points=_path(_stepped(middle), scale),
        band=band,
        label=scale.y(middle[-1][1]),
    )


def _at(curve: Curve, clock: float) -> float:
    """The best so far then; a step line keeps its last value."""
    return curve[max(0, bisect(curve, clock, key=itemgetter(0)) - 1)][1]


def _stepped(curve: Curve) -> list[tuple[float, float]]:
    before = [value for _, value in curve]
    corners = [[(at, old), (at, new)] for (at, new), old in zip(curve[1:], before, strict=False)]
    return [*curve[:1], *(point for pair in corners for point in pair)]


def _path(points: Curve, scale: _Scale) -> str:
    return " ".join(f"{scale.x(clock):.1f},{scale.y(value):.1f}" for clock, value in points)


def _apart(lines: Sequence[Line]) -> list[Line]:
    """Labels at least a line of text apart, within the picture."""
    ranked = sorted(lines, key=lambda line: line.label)
    down = list(accumulate((line.label for line in ranked), lambda above, at: max(at, above + BETWEEN)))
    room = HEIGHT - BOTTOM
    up = list(accumulate(reversed(down), lambda below, at: min(at, below - BETWEEN), initial=room + BETWEEN))[:0:-1]
    places = {id(line): place for line, place in zip(ranked, up, strict=True)}
    return [replace(line, label=places[id(line)]) for line in lines]


def _budget(run: TuningRun) -> str:
    limits = (
        humans.duration(run.budget_seconds) if run.budget_seconds else "",
        f"{humans.whole(run.budget_trials)} trials" if run.budget_trials else "",
        f"until {humans.latency(run.budget_latency)}" if run.budget_latency else "",
    )
    return ", ".join(limit for limit in limits if limit)
