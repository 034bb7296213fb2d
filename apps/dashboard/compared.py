"""Runs of one network on one chart: latency against tuning time, runs that were asked for alike as one line."""

from __future__ import annotations

import json
import math
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from django.db.models import Count, Q

from apps.dashboard import words
from apps.dashboard.figures import budget
from apps.dashboard.methods import titled
from apps.dashboard.plot import Curve, Plot, apart, monotone, stepped
from apps.dashboard.streams import as_csv
from apps.tuning.live import thinned
from apps.tuning.models import Event, Operator, TuningRun

POINTS = 300
LINES = 8
"""As many as there are colours: the latest."""
WIDE: dict[str, Any] = {"right": 650}
NARROW: dict[str, Any] = {"width": 380, "height": 290, "left": 58, "right": 338, "bottom": 262, "foot": 262}
"""With room for words beside the field, and for a screen that is held in a hand, where there is none."""


class Known(NamedTuple):
    """Operators of which earlier runs had measurements at the start, and others that are like some of them."""

    own: int = 0
    alike: int = 0


class Point(NamedTuple):
    """Seconds of tuning, and the median, the lowest and the highest of the runs' latencies then."""

    clock: float
    latency: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Line:
    """Runs that were asked for alike. `title` tells it from all others, `latency` and `clock` are what they came to; `again`
    where that is more than what `points` end with: bests were measured again."""

    method: str
    title: str
    budget: str
    start: str
    runs: Sequence[TuningRun]
    latency: float
    clock: float
    points: Sequence[Point]
    again: bool

    @property
    def repeated(self) -> bool:
        """Whether seeds do not tell its runs apart."""
        return len({run.seed for run in self.runs}) < len(self.runs)

    @property
    def changes(self) -> list[Point]:
        """Points at which something changed, and the last one."""
        before = [None, *(point[1:] for point in self.points)]
        last = len(self.points) - 1
        return [point for n, point in enumerate(self.points) if n == last or point[1:] != before[n]]


@dataclass(frozen=True)
class Drawn:
    """A line in an SVG: `points` and `band` (lowest and highest of several) as its polygons have them, the place of a mark
    for what was measured again, and the height of its words."""

    line: Line
    points: str
    band: str
    mark: tuple[float, float] | None
    label: float


@dataclass(frozen=True)
class Chart:
    plot: Plot
    lines: Sequence[Drawn]


@dataclass(frozen=True)
class Picture:
    """Lines in the order of their runs, the latest of so many `settings`, on a wide and on a narrow screen."""

    lines: Sequence[Line]
    settings: int
    wide: Chart
    narrow: Chart

    @property
    def several(self) -> bool:
        return any(len(line.runs) > 1 for line in self.lines)

    @property
    def again(self) -> bool:
        return any(line.again for line in self.lines)


def picture(runs: Iterable[TuningRun]) -> Picture | None:
    """None without a run that has a latency; runs come latest first."""
    measured = [run for run in runs if run.latency is not None]
    curves, known = _curves(measured), _known(measured)
    groups: defaultdict[str, list[TuningRun]] = defaultdict(list)
    for run in measured:
        if curves[run.pk]:
            groups[_alike(run, known[run.pk])].append(run)
    alike = list(islice(groups.values(), LINES))
    if not alike:
        return None
    titles = _titles([(several[0], known[several[0].pk]) for several in alike])
    lines = [
        _line(several, [curves[run.pk] for run in several], title, _start(several[0], known[several[0].pk]))
        for several, title in zip(alike, titles, strict=True)
    ]
    return Picture(lines, len(groups), _chart(lines, **WIDE), _chart(lines, **NARROW))


def table(lines: Sequence[Line]) -> str:
    """The points of all lines as CSV; columns name their units."""
    rows: list[Sequence[Any]] = [
        ("line", "method", "limit", "start", "seeds", "clock_s", "latency_s", "lowest_s", "highest_s")
    ]
    for line in lines:
        told = [line.title, line.method, line.budget, line.start, " ".join(str(run.seed) for run in line.runs)]
        rows += [[*told, *point] for point in line.points]
    return as_csv(rows)


def _curves(runs: Sequence[TuningRun]) -> dict[Any, list[tuple[float, float]]]:
    """(clock, latency) of each run, by its key, as its own page draws them: after each batch, of many an even choice and the
    first one with a latency, and now. In three queries for all of them."""
    batches: dict[Any, list[int]] = {run.pk: [] for run in runs}
    for key, number in Event.objects.filter(run__in=runs, kind="batch").order_by("seq").values_list("run_id", "seq"):
        batches[key].append(number)
    told = _told({key: Q(seq__in=thinned(numbers, POINTS)) for key, numbers in batches.items() if numbers})
    between = {key: gap for key, rows in told.items() if (gap := _before_the_first(rows))}
    earlier = _told(between)
    found = {}
    for run in runs:
        rows = [*earlier.get(run.pk, ()), *told.get(run.pk, ())]
        found[run.pk] = curve = [(clock, latency) for _, clock, latency in sorted(rows) if latency is not None]
        if curve and run.latency is not None and run.clock > curve[-1][0]:
            curve.append((run.clock, run.latency))
    return found


Told = tuple[int, float, float | None]
"""A batch: its number, its time and the latency then."""


def _told(asked: Mapping[Any, Q]) -> dict[Any, list[Told]]:
    """Of these batches of each run."""
    wanted = Q()
    for key, which in asked.items():
        wanted |= Q(run=key) & which
    found: dict[Any, list[Told]] = {key: [] for key in asked}
    if asked:
        rows = Event.objects.filter(wanted, kind="batch").order_by("seq")
        for key, *row in rows.values_list("run_id", "seq", "clock", "payload__latency"):
            found[key].append((row[0], row[1], row[2]))
    return found


def _before_the_first(rows: Sequence[Told]) -> Q | None:
    """What was left out just before the first one with a latency."""
    first = next((n for n, (*_, latency) in enumerate(rows) if latency is not None), 0)
    return Q(seq__gt=rows[first - 1][0], seq__lt=rows[first][0]) if first else None


def _known(runs: Sequence[TuningRun]) -> dict[Any, Known]:
    own, alike = Count("pk", filter=Q(known__gt=0)), Count("pk", filter=Q(known=0, alike__gt=0))
    rows = Operator.objects.filter(run__in=runs).order_by().values_list("run_id").annotate(own=own, others=alike)
    return {run.pk: Known() for run in runs} | {key: Known(*counted) for key, *counted in rows}


def _alike(run: TuningRun, known: Known) -> str:
    """What was asked for, of what machine, as it was then, and what was known of the operators at the start."""
    limits = [run.budget_seconds, run.budget_trials, run.budget_latency, run.budget_gain]
    asked = [run.method, run.parts, run.operators_asked, run.layout, run.shapes, run.reuse, known, limits]
    return json.dumps([*asked, str(run.target_id), run.machine["tvm"], run.machine["threads"]], sort_keys=True)


def _start(run: TuningRun, known: Known) -> str:
    """What it began with, for the line's words."""
    if not run.reuse:
        return "from nothing"
    told = (f"{known.own} known" if known.own else "", f"{known.alike} alike" if known.alike else "")
    return ", ".join(filter(None, told)) or "nothing known"


def _titles(settings: Sequence[tuple[TuningRun, Known]]) -> list[str]:
    """The method of each, and of those with the same one what else differs."""
    names = [_method(run) for run, _ in settings]
    facts = [_facts(run, known) for run, known in settings]
    titles = []
    for name, mine in zip(names, facts, strict=True):
        same = [theirs for other, theirs in zip(names, facts, strict=True) if other == name]
        differs = [fact for n, fact in enumerate(mine) if any(theirs[n] != fact for theirs in same)]
        titles.append(", ".join([name, *differs]))
    return titles


def _method(run: TuningRun) -> str:
    return ", ".join(filter(None, [titled(run.method, run.parts), words.only(run)]))


def _facts(run: TuningRun, known: Known) -> list[str]:
    tvm = " ".join(f"{key}={value}" for key, value in sorted(run.machine["tvm"].items()))
    shapes = ", ".join(f"{name} {'x'.join(map(str, sizes))}" for name, sizes in sorted(run.shapes.items()))
    threads = f"{run.machine['threads']} threads"
    return [budget(run), _start(run, known), f"layout {run.layout}", shapes, run.machine_name, threads, tvm]


def _line(runs: Sequence[TuningRun], curves: Sequence[Curve], title: str, start: str) -> Line:
    held = [monotone(curve)[0] for curve in curves]  # what was measured again raises no line
    begun = max(curve[0][0] for curve in held)
    # A run that used up what it was given keeps its last value; what another would have found later nobody knows.
    broken = [curve[-1][0] for run, curve in zip(runs, held, strict=True) if run.finished_reason in ("", "stopped")]
    end = max(begun, min(broken, default=math.inf))
    times = sorted({clock for curve in held for clock, _ in curve if begun <= clock <= end})
    rows = [(at, [_at(curve, at) for curve in held]) for at in thinned(times, 2 * POINTS)]
    points = [Point(at, median(values), min(values), max(values)) for at, values in rows]
    latency = median(run.latency or 0.0 for run in runs)
    raised = any((run.latency or 0.0) > curve[-1][1] for run, curve in zip(runs, held, strict=True))
    return Line(
        method=_method(runs[0]),
        title=title,
        budget=budget(runs[0]),
        start=start,
        runs=runs,
        latency=latency,
        clock=max(run.clock for run in runs),
        points=points,
        again=raised and latency > points[-1].latency,
    )


def _at(curve: Curve, clock: float) -> float:
    """The best so far then; a step line keeps its last value."""
    return curve[max(0, bisect(curve, clock, key=itemgetter(0)) - 1)][1]


def _chart(lines: Sequence[Line], **places: Any) -> Chart:
    end = max(line.clock for line in lines)
    latencies = [value for line in lines for _, *values in line.points for value in values]
    plot = Plot.around(end, [*latencies, *(line.latency for line in lines if line.again)], **places)
    drawn = [_drawn(line, plot) for line in lines]
    labels = apart([one["label"] for one in drawn], plot.bottom)
    return Chart(plot, [Drawn(**{**one, "label": label}) for one, label in zip(drawn, labels, strict=True)])


def _drawn(line: Line, plot: Plot) -> Mapping[str, Any]:
    band = ""
    if len(line.runs) > 1:
        lower = [(point.clock, point.lowest) for point in line.points]
        upper = [(point.clock, point.highest) for point in line.points]
        band = plot.path(stepped(upper)) + " " + plot.path(stepped(lower)[::-1])
    last = line.points[-1]
    mark = (plot.x(last.clock), plot.y(line.latency)) if line.again else None
    return {
        "line": line,
        "points": plot.path(stepped([(point.clock, point.latency) for point in line.points])),
        "band": band,
        "mark": mark,
        "label": mark[1] if mark else plot.y(last.latency),
    }
