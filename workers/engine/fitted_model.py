"""A sketch's cost model, fitted again as its points grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.history import History
from workers.engine.ports import CostModel, Prediction
from workers.engine.search import Search
from workers.engine.space import Choices, Features, Operator
from workers.engine.transfer import AGREEMENT, LEAST, Loan, Neighbours, agreement, extents, placed

Opinion = Callable[[Choices], Prediction]

RARELY = 0.02
"""Of its points, by which they grow at least until it is fitted again: a fit takes the longer the more they are, and every 8 of
thousands it would be a tenth of a run of hours."""

SEVERAL = 3
"""Calls after which it is a walk: a sketch that is scored whole has one, and its sampler another. Tables take as long to make
as fifteen calls without."""
MANY = 512
"""Configurations of a call from which on a table is no quicker: the library has less to do before it begins."""


class FittedModel:
    """Knows on how many of the sketch's first points it was fitted, and which ones it borrowed then: `fitted` and
    `loans`, all that a checkpoint needs to fit it again from the same points."""

    def __init__(
        self,
        operator: Operator,
        sketch: int,
        make: Callable[[], CostModel],
        search: Search,
        history: History,
        neighbours: Neighbours,
        counters: dict[str, float],
    ) -> None:
        self._operator, self._number, self._sketch = operator.index, sketch, operator.sketches[sketch]
        self._make, self._search, self._neighbours = make, search, neighbours
        self._seen, self._counters = history.sketches[sketch], counters
        self.fitted = 0
        self.loans: tuple[Loan, ...] = ()
        self._model: tuple[Any, CostModel] | None = None

    def predict(self, choices: Choices) -> Prediction:
        """Opinion on choices (n, k), relative to the best of the last fit."""
        model = self.refitted()
        return model.predict(self._features(choices))

    def frozen(self) -> tuple[Opinion, float]:
        """For one walk: the opinion of the model as it is now, and the best speed on its scale (log2)."""
        model = self.refitted()
        table: Opinion | None = None
        calls = count(1)

        def opinion(choices: Choices) -> Prediction:
            nonlocal table
            few = len(choices) < MANY
            if few and next(calls) == SEVERAL:
                table = self._tabled(model)
            return table(choices) if few and table is not None else model.predict(self._features(choices))

        # The model speaks relative to the best it was fitted on; a better one may have been found since.
        best = max(self._seen.speeds[: self.fitted], default=0.0)
        return opinion, math.log2(self._seen.best / best) if best else 0.0

    def refitted(self) -> CostModel:
        """The model, on all points if these have grown enough since the last fit."""
        fitted, points = self.fitted, len(self._seen.speeds)
        growth = max(1.0, min(self._search.refit_points, self._search.refit * fitted), RARELY * fitted)
        # More fitted than there is: an earlier run that this one had begun with was deleted.
        gone = any(not self._neighbours.holds(self._operator, loan) for loan in self.loans)
        if not 0 < fitted <= points or points - fitted >= growth or gone:
            fitted = self.fitted = points
            offers = self._offers()
            self.loans = offers if self._agree(offers) else ()
            self._counters["fits"] += 1
        on = (fitted, self.loans)
        if self._model is None or self._model[0] != on:
            model = self._make()
            model.fit(*self._points(fitted))
            self._model = (on, model)
        return self._model[1]

    def _offers(self) -> tuple[Loan, ...]:
        own, offers = len(self._seen.speeds), list[Loan]()
        if own < self._search.transfer:
            offers += self._neighbours.loans(self._operator, self._sketch)
        if own < self._search.earlier:
            offers += self._neighbours.earlier(self._operator, self._number)
        return tuple(offers)

    def _agree(self, offers: tuple[Loan, ...]) -> bool:
        """Whether a model of others' points alone orders the own ones better than chance, of which it takes some: they may be
        of another kind."""
        if not offers or len(self._seen.speeds) < LEAST:
            return False
        model = self._make()
        model.fit(*self._neighbours.points(offers))
        rows = np.asarray(self._seen.choices, dtype=np.int32)
        opinion = model.predict(placed(self._sketch, rows)).mean
        return agreement(opinion, np.asarray(self._seen.speeds)) >= AGREEMENT

    def _tabled(self, model: CostModel) -> Opinion | None:
        """Not kept from walk to walk: those of hundreds of operators would fill the memory."""
        tables = self._sketch.tables
        fixed = extents(self._sketch) if self.loans else np.zeros(0, dtype=np.float32)
        return None if tables is None else model.tabled(tables, fixed)

    def _features(self, choices: Choices) -> Features:
        """As the model was fitted on."""
        return placed(self._sketch, choices) if self.loans else self._sketch.features(choices)

    def _points(self, fitted: int) -> tuple[Features, NDArray[np.float64]]:
        """The first `fitted` own points and the borrowed ones; speeds of several operators are relative to the best of
        each."""
        rows = np.asarray(self._seen.choices[:fitted], dtype=np.int32).reshape(fitted, len(self._sketch.knobs))
        features, speeds = self._features(rows), np.asarray(self._seen.speeds[:fitted])
        if not self.loans:
            return features, speeds
        others, theirs = self._neighbours.points(self.loans)
        best = speeds.max(initial=0.0) or 1.0
        return np.concatenate([features, others]), np.concatenate([speeds / best, theirs])
