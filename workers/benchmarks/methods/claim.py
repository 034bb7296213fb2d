"""One claim: what is compared, what is wanted of it, and whether that holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workers.benchmarks.cells import Cell
from workers.benchmarks.interval import Interval, median
from workers.benchmarks.methods.compare import Measure

NO_TARGET = "-"
EXACT = 1e-9
YES, NO, OPEN = "yes", "no", "open"
"""All that the intervals leave possible meets the target, nothing of it does, or some of it."""

Values = Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Of one figure a network, mostly a ratio, more is better: each at least `every`, except of a share `but` of them, and none
    over `most`; one at least `somewhere`; their median at least `median`. With none of these it is a figure to look at, and
    neither holds nor fails. A share is of events, of which it wants at least `fewest`. `timed`: the figure is of no seeds, so
    that it has no interval and decides itself."""

    every: float | None = None
    but: float = 0.0
    most: float = math.inf
    somewhere: float | None = None
    median: float | None = None
    fewest: int = 0
    timed: bool = False

    @property
    def target(self) -> str:
        words = []
        if self.every is not None:
            most = "" if not self.but else f" on {1 - self.but:.0%} of the networks"
            words.append(f">= {self.every:.2f}{most or ' everywhere'}")
        words += [f"<= {self.most:.2f}"] if self.most < math.inf else []
        words += [f">= {self.somewhere:.2f} somewhere"] if self.somewhere is not None else []
        words += [f"median >= {self.median:.2f}"] if self.median is not None else []
        words += [f"of >= {self.fewest}"] if words and self.fewest else []
        return ", ".join(words) or NO_TARGET

    def holds(self, networks: Sequence[Interval], events: int | None = None) -> str | None:
        """YES when the bounds meet it at their worst, NO when not even at their best, else OPEN, as where there are too few
        seeds for bounds. None without a network or a target, or with fewer events than it wants."""
        if not self._asked(networks, events):
            return None
        anything = (-math.inf, math.inf)
        lows, highs = zip(*(self._own(one) or one.bounds or anything for one in networks), strict=True)
        found = {_judged(self._enough, lows, highs), _judged(self._within, highs, lows)}
        return NO if NO in found else OPEN if OPEN in found else YES

    def met(self, networks: Sequence[Interval], events: int | None = None) -> bool | None:
        """The same of the medians alone, whatever their bounds."""
        if not self._asked(networks, events):
            return None
        medians = [one.median for one in networks]
        return self._enough(medians) and self._within(medians)

    def _asked(self, networks: Sequence[Interval], events: int | None) -> bool:
        return bool(networks) and self.target != NO_TARGET and (events is None or events >= self.fewest)

    def _own(self, one: Interval) -> tuple[float, float] | None:
        return (one.median, one.median) if self.timed else None

    def _enough(self, values: Values) -> bool:
        needed = self.every is None or sum(v >= self.every - EXACT for v in values) >= (1 - self.but) * len(values)
        best = self.somewhere is None or max(values) >= self.somewhere - EXACT
        return bool(needed and best and (self.median is None or median(values) >= self.median - EXACT))

    def _within(self, values: Values) -> bool:
        return max(values) <= self.most + EXACT


@dataclass(frozen=True)
class Claim(Target):
    """`arm` against `base` by `measure`: of each network the median over the seeds. `events` counts those of a share."""

    source: str
    text: str
    reported: str
    arm: str
    base: str
    measure: Measure
    kinds: tuple[str, ...]
    events: Callable[[Cell, Cell], int] | None = None


def _judged(met: Callable[[Values], bool], worst: Values, best: Values) -> str:
    return YES if met(worst) else OPEN if met(best) else NO
