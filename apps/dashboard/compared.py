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

from apps.dashboard import humans, run_curves, words
from apps.dashboard.figures import Library, budget, library
from apps.dashboard.plot import Curve, Plot, apart, monotone, stepped
from apps.dashboard.streams import as_csv
from apps.tuning.methods import titled
from apps.tuning.models import Operator, TuningRun
from apps.tuning.thinning import thinned
from workers.messages.baselines import ONNX_RUNTIME

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
    """Runs that were asked for alike. `title` tells it from all others, `latency` and `clock` are what they had come to where
    it ends; `again` where that is more than what `points` end with: bests were measured again."""

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
    def cut(self) -> bool:
        """Whether another of its runs went on, after one was stopped or since one is no further."""
        return any(run.clock > self.clock for run in self.runs)

    @property
    def whole(self) -> float | None:
        """Seconds end to end: the median of those of its runs that had a library by where the line ends, by the last one."""
        return _middle(found.seconds for found, _ in self._timed)

    @property
    def unsteady(self) -> bool:
        """Whether the machine did something else while one of these libraries was timed."""
        return any(found.unsteady for found, _ in self._timed)

    @property
    def over_onnxruntime(self) -> float | None:
        """How many times faster that is: the median; None where one of them was not compared."""
        ratios = [baseline / found.seconds for found, baseline in self._timed if baseline]
        return _middle(ratios) if len(ratios) == len(self._timed) else None

    @property
    def _timed(self) -> list[tuple[Library, float | None]]:
        """(the library, ONNX Runtime's seconds) of its runs that had a library."""
        told = [
            (library(run, self.clock), {line["name"]: line["seconds"] for line in run.baselines}) for run in self.runs
        ]
        return [(found, theirs.get(ONNX_RUNTIME)) for found, theirs in told if found]

    @property
    def changes(self) -> list[Point]:
        """Points at which something changed, and the last one."""
        before = [None, *(point[1:] for point in self.points)]
        last = len(self.points) - 1
        return [point for n, point in enumerate(self.points) if n == last or point[1:] != before[n]]


@dataclass(frozen=True)
class Drawn:
    """A line in an SVG: `points` and `band` (lowest and highest of several) as its polygons have them, the place of a mark
    for what was measured again, where it ends, and the height of its words, which stand beside the field."""

    line: Line
    points: str
    band: str
    mark: tuple[float, float] | None
    end: tuple[float, float]
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

    @property
    def cut(self) -> bool:
        return any(line.cut for line in self.lines)


def described(run: TuningRun, dynamic: Any) -> str:
    """What tells it from others of its network, whose file leaves these sizes open, where one is chosen."""
    sizes = humans.sizes(run.shapes, dynamic)
    return ", ".join(filter(None, [_method(run), budget(run), sizes, run.machine_name, f"seed {run.seed}"]))


def picture(runs: Iterable[TuningRun]) -> Picture | None:
    """None without a run that has a latency; runs come latest first."""
    measured = [run for run in runs if run.latency is not None]
    curves, known = run_curves.curves(measured), _known(measured)
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


def _known(runs: Sequence[TuningRun]) -> dict[Any, Known]:
    own, alike = Count("pk", filter=Q(known__gt=0)), Count("pk", filter=Q(known=0, alike__gt=0))
    rows = Operator.objects.filter(run__in=runs).order_by().values_list("run_id").annotate(own=own, others=alike)
    return {run.pk: Known() for run in runs} | {key: Known(*counted) for key, *counted in rows}


def _alike(run: TuningRun, known: Known) -> str:
    """What was asked for, of what machine, as it was then, and what was known of the operators at the start."""
    limits = [run.budget_seconds, run.budget_trials, run.budget_latency, run.budget_gain]
    asked = [run.method, run.parts, run.operators_asked, run.layout, run.shapes, run.reuse, known, limits]
    machine = [str(run.target_id), run.machine_name, run.machine["tvm"], run.machine["threads"]]
    return json.dumps([*asked, *machine], sort_keys=True)


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
    tvm = words.target_words(run.machine["tvm"])
    shapes = ", ".join(f"{name} {'x'.join(map(str, sizes))}" for name, sizes in sorted(run.shapes.items()))
    threads = f"{run.machine['threads']} {words.units(run.machine['tvm'])}"
    return [budget(run), _start(run, known), f"layout {run.layout}", shapes, run.machine_name, threads, tvm]


def _line(runs: Sequence[TuningRun], curves: Sequence[Curve], title: str, start: str) -> Line:
    held = [monotone(curve)[0] for curve in curves]  # what was measured again raises no line
    begun = max(curve[0][0] for curve in held)
    # A run that used up what it was given keeps its last value; what another would have found later nobody knows.
    broken = [curve[-1][0] for run, curve in zip(runs, held, strict=True) if run.finished_reason in ("", "stopped")]
    end = max(begun, min(broken, default=math.inf))
    times = sorted({clock for curve in held for clock, _ in curve if begun <= clock <= end})
    rows = [(at, [_at(curve, at) for curve in held]) for at in thinned(times, 2 * run_curves.POINTS)]
    points = [Point(at, median(values), min(values), max(values)) for at, values in rows]
    last = points[-1]
    latency = median(_at(curve, last.clock) for curve in curves)
    return Line(
        method=_method(runs[0]),
        title=title,
        budget=budget(runs[0]),
        start=start,
        runs=runs,
        latency=latency,
        clock=last.clock,
        points=points,
        again=latency > last.latency,
    )


def _middle(values: Iterable[float]) -> float | None:
    found = list(values)
    return median(found) if found else None


def _at(curve: Curve, clock: float) -> float:
    """The best so far then; a step line keeps its last value."""
    return curve[max(0, bisect(curve, clock, key=itemgetter(0)) - 1)][1]


def _chart(lines: Sequence[Line], **places: Any) -> Chart:
    end = max(run.clock for line in lines for run in line.runs)
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
    end = mark or (plot.x(last.clock), plot.y(last.latency))
    return {
        "line": line,
        "points": plot.path(stepped([(point.clock, point.latency) for point in line.points])),
        "band": band,
        "mark": mark,
        "end": end,
        "label": end[1],
    }
