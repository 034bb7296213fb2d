"""Which sketch of an operator gets how much of a plan."""

from __future__ import annotations

import math

import numpy as np

from workers.engine.history import History
from workers.engine.search import Search
from workers.engine.space import Operator


class SketchShares:
    """Shares a plan in proportion to (best speed of the sketch / best of all) ** power + curiosity x
    sqrt(ln(1 + n) / (1 + n of the sketch)), with n measured points.

    A UCB bandit on the best rather than the mean speed, since a sketch is worth its best program. A sketch without a
    valid point counts as the best while it has fewer than `first`, and without any point in any case.
    """

    def __init__(self, operator: Operator, history: History, search: Search, rng: np.random.Generator) -> None:
        self._operator, self._history, self._search, self._rng = operator, history, search, rng

    def open(self) -> list[int]:
        """Sketches with something left to propose."""
        sketches = enumerate(zip(self._operator.sketches, self._history.sketches, strict=True))
        patience = self._search.patience
        return [i for i, (sketch, seen) in sketches if len(seen.visited) < sketch.size and seen.streak < patience]

    def of(self, count: int) -> list[tuple[int, int]]:
        """(sketch, members) of each open sketch with a part in `count`, rounded at random to the right mean."""
        ids = self.open()
        if not ids or count < 1:
            return []
        if len(ids) == 1:
            return [(ids[0], count)]
        weights = np.asarray([self._appeal(i) for i in ids])
        edges = np.cumsum(weights / weights.sum()) * count + self._rng.random()
        members = np.diff(np.floor(np.concatenate([[edges[-1] - count], edges])).astype(int))
        return [(i, int(n)) for i, n in zip(ids, members, strict=True) if n > 0]

    def _appeal(self, sketch: int) -> float:
        seen = self._history.sketches[sketch]
        total = sum(len(other.speeds) for other in self._history.sketches)
        best = max(other.best for other in self._history.sketches)
        promising = seen.best == 0 and len(seen.speeds) < max(1, self._search.first)
        value = 1.0 if promising or best == 0 else math.pow(seen.best / best, self._search.power)
        doubt = math.sqrt(math.log1p(total) / (1 + len(seen.speeds)))
        return value + self._search.curiosity * doubt + 1e-3
