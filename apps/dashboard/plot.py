"""Where an SVG has what: what all charts that the server draws share. Times and latencies are in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

from apps.dashboard import humans

BETWEEN = 16
"""From one line of words to the next."""
ASIDE = 90
"""From one time on the axis to the next, at least."""
LABELS = 7
"""Latencies on the axis, at most."""
SLACK = 1.03
LEAST, MOST = 1e-12, 1e9
"""Seconds: beyond them is no latency, whatever a child tells, and a scale would have no end."""
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)

Curve = Sequence[tuple[float, float]]
Tick = tuple[float, str]
"""Its place, and what is written there."""


@dataclass(frozen=True)
class Plot:
    """Times from 0 to `end` across, latencies from `low` to `high` up on a logarithmic scale.

    A picture of `width` x `height` has its field between `left` and `right`, `top` and `bottom`; what lies beyond is
    drawn at its edge. The times stand under `foot`: between field and foot there is room for more on the same axis.
    """

    end: float
    low: float
    high: float
    width: int = 960
    height: int = 360
    left: int = 64
    right: int = 710
    top: int = 12
    bottom: int = 332
    foot: int = 332

    @classmethod
    def around(cls, end: float, latencies: Iterable[float], **places: Any) -> Self:
        """With all of them inside that may be latencies."""
        values = [value for value in latencies if LEAST < value < MOST] or [1.0]
        return cls(end, min(values) / SLACK, max(values) * SLACK, **places)

    @property
    def strip(self) -> float:
        """The middle of what lies between field and foot."""
        return (self.bottom + self.foot) / 2

    def x(self, clock: float) -> float:
        return self.left + (self.right - self.left) * min(1.0, clock / (self.end or 1.0))

    def y(self, latency: float) -> float:
        within = min(max(latency, self.low), self.high)
        return self.top + (self.bottom - self.top) * math.log(self.high / within) / math.log(self.high / self.low)

    def path(self, points: Curve) -> str:
        """The points of a polyline."""
        return " ".join(f"{self.x(clock):.1f},{self.y(latency):.1f}" for clock, latency in points)

    def times(self) -> list[Tick]:
        if self.end < 1:  # all of it is within the first step
            return [(self.x(at), humans.duration(at) if at else "0") for at in dict.fromkeys((0.0, self.end))]
        most = (self.right - self.left) // ASIDE
        days = 86400 * math.ceil(self.end / 86400 / most)
        step = next((size for size in _STEPS if self.end / size <= most), days)
        return [(self.x(at), humans.duration(at) if at else "0") for at in range(0, int(self.end) + 1, step)]

    def latencies(self) -> list[Tick]:
        tens = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found: list[float] = []
        for digits in ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 5), (1,)):
            found = [digit * 10.0**power for power in tens for digit in digits]
            found = [value for value in found if self.low <= value <= self.high]
            if len(found) <= LABELS:
                break
        found = found[:: -(-len(found) // LABELS) or 1]
        # Within less than a decade even steps read better.
        return [(self.y(value), humans.latency(value)) for value in (found if len(found) > 2 else self._even())]

    def _even(self) -> list[float]:
        rough = (self.high - self.low) / LABELS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
        return [step * count for count in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def stepped(curve: Curve) -> list[tuple[float, float]]:
    """With the corners of a step line: a best holds until there is a better one."""
    before = [value for _, value in curve]
    corners = [[(at, old), (at, new)] for (at, new), old in zip(curve[1:], before, strict=False)]
    return [*curve[:1], *(point for pair in corners for point in pair)]


def monotone(curve: Curve) -> tuple[Curve, Curve, bool]:
    """As static/js/run/monotone.js: the line of the lowest so far; where it was corrected upwards, what it came to before it
    fell below the line again; and whether it is above the line in the end."""
    line, again = list[tuple[float, float]](), list[tuple[float, float]]()
    over = False
    for clock, seconds in curve:
        lowest = min(seconds, line[-1][1]) if line else seconds
        line.append((clock, lowest))
        if seconds == lowest:
            over = False
        elif not over:
            again.append((clock, seconds))
            over = True
        elif seconds != again[-1][1]:
            again[-1] = (clock, seconds)
    return line, again, over


def apart(places: Sequence[float], room: float) -> list[float]:
    """For words that belong at these heights: places at least a line of text apart, the lowest at `room` at most."""
    ranked = sorted(range(len(places)), key=places.__getitem__)
    down = list(accumulate((places[one] for one in ranked), lambda above, at: max(at, above + BETWEEN)))
    up = list(accumulate(reversed(down), lambda below, at: min(at, below - BETWEEN), initial=room + BETWEEN))[:0:-1]
    found = dict(zip(ranked, up, strict=True))
    return [found[one] for one in range(len(places))]
