"""A method whose inner search says what its seconds went into."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.methods import Method
from workers.engine.ports import CostModel, Explorer, Prediction, Sampler, Score
from workers.engine.space import Choices, Features, Sketch
from workers.pipeline.accounts import Accounts


def watched(method: Method, accounts: Accounts) -> Method:
    """The same method; explorers, samplers and cost models that it makes charge the accounts "search/...".

    A copy with makers of its own: a method may be of a class that makes proposers its own way, as landscapes' are.
    """
    own = copy(method)
    for maker, kind in (("make_explorer", _Explorer), ("make_sampler", _Sampler), ("make_cost_model", _CostModel)):
        object.__setattr__(own, maker, _wrapping(getattr(method, maker), kind, accounts))  # methods are frozen
    return own


def _wrapping(make: Callable[..., Any], kind: type[_Part], accounts: Accounts) -> Callable[..., Any]:
    return lambda *given: kind(make(*given), accounts)


class _Part:
    """What is not watched goes to the part itself."""

    def __init__(self, inner: Any, accounts: Accounts) -> None:
        self._inner, self._accounts = inner, accounts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Explorer(_Part):
    """Scoring is charged to "features": what it takes beyond the model's prediction is mostly looking them up, where no table
    of the model does that."""

    _inner: Explorer

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        def scored(choices: Choices) -> NDArray[np.float64]:
            with self._accounts.spending("search/features"):
                return score(choices)

        with self._accounts.spending("search/explore"):
            return self._inner.explore(sketch, scored, count, visited)


class _Sampler(_Part):
    _inner: Sampler

    def sample(self, *given: Any) -> Choices:
        with self._accounts.spending("search/sample"):
            return self._inner.sample(*given)


class _CostModel(_Part):
    _inner: CostModel

    def fit(self, features: Features, speeds: NDArray[np.float64]) -> None:
        with self._accounts.spending("search/fit"):
            self._inner.fit(features, speeds)

    def predict(self, features: Features) -> Prediction:
        with self._accounts.spending("search/predict"):
            return self._inner.predict(features)

    def tabled(self, *given: Any) -> Callable[[Choices], Prediction] | None:
        with self._accounts.spending("search/predict"):
            opinion = self._inner.tabled(*given)

        def watched(choices: Choices) -> Prediction:
            assert opinion is not None
            with self._accounts.spending("search/predict"):
                return opinion(choices)

        return watched if opinion is not None else None
