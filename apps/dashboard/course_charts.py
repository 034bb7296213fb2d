"""Drawings of an operator's course: against its own time, with what was expected of its slots; and against the run's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.dashboard import humans
from apps.dashboard.course import Course, Given
from apps.dashboard.plot import Plot, stepped
from apps.tuning.models import TuningRun

OWN: dict[str, Any] = {"right": 840, "height": 320, "bottom": 292, "foot": 292}
CLOCK: dict[str, Any] = {"right": 840, "height": 240, "bottom": 188, "foot": 212}


@dataclass(frozen=True)
class Came:
    """What a slot came to, as a dot; `within` the band of what was expected."""

    x: float
    y: float
    within: bool
    words: str


@dataclass(frozen=True)
class Chart:
    """`points` are of the line of the best so far; `bands`, `means` and `slots` are paths, empty where there is nothing."""

    plot: Plot
    points: str
    bands: str = ""
    means: str = ""
    came: Sequence[Came] = ()
    slots: str = ""

    @property
    def label(self) -> float:
        """The height at which the line ends."""
        return float(self.points.rpartition(",")[2])


def charts(run: TuningRun, course: Course) -> tuple[Chart | None, Chart | None]:
    """By own time (None before the first slot) and by the run's clock (None before the first latency)."""
    if not course.steps:
        return None, None
    believed = [slot for slot in course.given if slot.within is not None]
    latencies = [step.seconds for step in course.steps]
    latencies += [slot.expected.mean for slot in believed if slot.expected is not None]
    best = course.steps[-1].seconds
    clock = Plot.around(run.clock, latencies, **CLOCK)
    curve = [*((step.clock, step.seconds) for step in course.steps), (run.clock, best)]
    by_clock = Chart(clock, clock.path(stepped(curve)), slots=_strip(clock, course.spans))
    if not course.own:
        return None, by_clock
    own = Plot.around(course.own, latencies, **OWN)
    curve = [*((step.own, step.seconds) for step in course.steps), (course.own, best)]
    return _against_own(own, own.path(stepped(curve)), believed), by_clock


def _against_own(plot: Plot, points: str, believed: Sequence[Given]) -> Chart:
    bands, means, came = [], [], []
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
    return Chart(plot, points, "".join(bands), "".join(means), came)


def _strip(plot: Plot, spans: Sequence[tuple[float, float]]) -> str:
    """A mark for each slot, wide enough to be seen."""
    ends = ((plot.x(began), plot.x(ended)) for began, ended in spans)
    return "".join(f"M{left:.1f} {plot.strip:.1f}H{max(right, left + 1.5):.1f}" for left, right in ends)
