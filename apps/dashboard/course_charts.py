"""Drawings of an operator's course: against its own time, with what was expected of its slots; and against the run's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.dashboard import humans
from apps.dashboard.course import Course, Given
from apps.dashboard.plot import Curve, Plot, apart, monotone, stepped
from apps.tuning.models import TuningRun

PLACES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "wide": (
        {"right": 760, "height": 320, "bottom": 292, "foot": 292},
        {"right": 760, "height": 240, "bottom": 188, "foot": 212},
    ),
    "narrow": (
        {"width": 380, "left": 58, "right": 372, "height": 292, "top": 28, "bottom": 264, "foot": 264},
        {"width": 380, "left": 58, "right": 372, "height": 240, "top": 28, "bottom": 188, "foot": 212},
    ),
}
"""By own time and by the run's clock. A screen held in a hand has no room for words beside the field: they stand over it."""
OVER = 10
"""From the field to the words over it."""


@dataclass(frozen=True)
class Came:
    """What a slot came to, as a dot; `within` the band of what was expected."""

    x: float
    y: float
    within: bool
    words: str


@dataclass(frozen=True)
class Said:
    """Words of the line, or of its last mark; `x` is where they begin, or with `end` where they end."""

    text: str
    x: float
    y: float
    end: bool
    strong: bool


@dataclass(frozen=True)
class Chart:
    """`points` are of the line of the best so far, `again` places of what bests came to that were measured again; `bands`,
    `means` and `slots` are paths, empty where there is nothing."""

    plot: Plot
    points: str
    again: Sequence[tuple[float, float]]
    said: Sequence[Said]
    bands: str = ""
    means: str = ""
    came: Sequence[Came] = ()
    slots: str = ""

    @property
    def beside(self) -> bool:
        """Whether words have room beside the field."""
        return _beside(self.plot)


def charts(run: TuningRun, course: Course, size: str = "wide") -> tuple[Chart | None, Chart | None]:
    """By own time (None before the first slot) and by the run's clock (None before the first latency)."""
    if not course.steps:
        return None, None
    of_own, of_clock = PLACES[size]
    believed = [slot for slot in course.given if slot.within is not None]
    latencies = [step.seconds for step in course.steps]
    latencies += [slot.expected.mean for slot in believed if slot.expected is not None]
    clock = Plot.around(run.clock, latencies, **of_clock)
    by_clock = Chart(
        clock,
        *_line(clock, [(step.clock, step.seconds) for step in course.steps], run.clock),
        slots=_strip(clock, course.spans),
    )
    if not course.own:
        return None, by_clock
    own = Plot.around(course.own, latencies, **of_own)
    line = _line(own, [(step.own, step.seconds) for step in course.steps], course.own)
    return Chart(own, *line, *_expected(own, believed)), by_clock


def _line(plot: Plot, steps: Curve, end: float) -> tuple[str, list[tuple[float, float]], list[Said]]:
    """The best so far, which never rises, what came of it when it was measured again, and the words of both."""
    line, again, over = monotone(steps)
    best, last = line[-1][1], steps[-1][1]
    marks = [(plot.x(clock), plot.y(seconds)) for clock, seconds in again]
    if not over:
        said = _words(plot, [(f"best {humans.latency(best)}", plot.y(best))])
    else:
        again_at = (f"measured again {humans.latency(last)}", plot.y(last))
        said = _words(plot, [again_at, (f"found at {humans.latency(best)}", plot.y(best))])
    return plot.path(stepped([*line, (end, best)])), marks, said


def _beside(plot: Plot) -> bool:
    return plot.width - plot.right > 100


def _words(plot: Plot, told: Sequence[tuple[str, float]]) -> list[Said]:
    """Of words and the heights of what they are about, the first ones strong."""
    if not _beside(plot):
        ends = [(plot.right, True), (plot.left, False)]
        return [Said(text, x, plot.top - OVER, end, end) for (text, _), (x, end) in zip(told, ends, strict=False)]
    heights = apart([y for _, y in told], plot.bottom)
    return [
        Said(text, plot.right + 10, y + 4, False, n == 0)
        for n, ((text, _), y) in enumerate(zip(told, heights, strict=True))
    ]


def _expected(plot: Plot, believed: Sequence[Given]) -> tuple[str, str, list[Came]]:
    bands, means, came = list[str](), list[str](), list[Came]()
    for slot in believed:
        if slot.expected is None or slot.after is None:
            continue
        x, told = plot.x(slot.own), slot.expected
        top, bottom = plot.y(told.before), plot.y(told.low)
        bands.append(f"M{x:.1f} {top:.1f}V{max(bottom, top + 1):.1f}")
        means.append(f"M{x - 4:.1f} {plot.y(told.mean):.1f}h8")
        between = f"{humans.latency(told.low)} to {humans.latency(told.before)}"
        words = f"Slot {slot.number}: expected {between}, came to {humans.latency(slot.after)}"
        came.append(Came(x, plot.y(slot.after), slot.within is True, words))
    return "".join(bands), "".join(means), came


def _strip(plot: Plot, spans: Sequence[tuple[float, float]]) -> str:
    """A mark for each slot, wide enough to be seen."""
    ends = ((plot.x(began), plot.x(ended)) for began, ended in spans)
    return "".join(f"M{left:.1f} {plot.strip:.1f}H{max(right, left + 1.5):.1f}" for left, right in ends)
