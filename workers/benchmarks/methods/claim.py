"""One claim: what is compared, what is wanted of it, and whether that holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from workers.benchmarks.cells import Cell
from workers.benchmarks.methods.compare import Measure

NO_TARGET = "-"
EXACT = 1e-9


@dataclass(frozen=True)
class Claim:
    """`arm` against `base` by `measure` (mostly a ratio, more is better): the median over seeds of every network at least
    `every`, except of a share `but` of them, and of none over `most`; of one at least `somewhere`; the median of the networks
    at least `median`.
    With none of these it is a figure to look at, and neither holds nor fails. A share is of `events`, of which it wants at
    least `fewest`."""

    source: str
    text: str
    reported: str
    arm: str
    base: str
    measure: Measure
    kinds: tuple[str, ...]
    every: float | None = None
    but: float = 0.0
    most: float = math.inf
    somewhere: float | None = None
    median: float | None = None
    events: Callable[[Cell, Cell], int] | None = None
    fewest: int = 0

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

    def holds(self, medians: Sequence[float], events: int | None = None) -> bool | None:
        """Of the networks' medians, at least one; None without a target, or with fewer events than it wants."""
        if self.target == NO_TARGET or (events is not None and events < self.fewest):
            return None
        needed = self.every is None or sum(m >= self.every - EXACT for m in medians) >= (1 - self.but) * len(medians)
        best = self.somewhere is None or max(medians) >= self.somewhere - EXACT
        within = max(medians) <= self.most + EXACT
        return bool(needed and within and best and (self.median is None or np.median(medians) >= self.median - EXACT))
