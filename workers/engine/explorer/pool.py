"""The best distinct configurations that a walk has met."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices

_MULTIPLIER = 0x9E3779B97F4A7C15


def rows_of(visited: Collection[tuple[int, ...]], knobs: int) -> Choices:
    """As (n, knobs), in any order: half as long as numpy takes for tuples, of which a long run has tens of thousands a plan."""
    count = len(visited)
    return np.fromiter(chain.from_iterable(visited), np.int32, count * knobs).reshape(count, knobs)


class Pool:
    """At most `count` distinct rows with the highest scores, none of them in `visited`.

    Rows are told apart by a 64-bit hash, so that a step costs no Python loop; a collision (1 in 2^64 a pair) would only
    lose a candidate.
    """

    def __init__(self, count: int, knobs: int, visited: Collection[tuple[int, ...]] = ()) -> None:
        powers = [pow(_MULTIPLIER, i + 1, 1 << 64) for i in range(knobs)]
        self._powers = np.asarray(powers, dtype=np.uint64)
        self._count = count
        self._visited = np.sort(self._hash(rows_of(visited, knobs)))
        self.rows: Choices = np.zeros((0, knobs), dtype=np.int32)
        self.scores: NDArray[np.float64] = np.zeros(0)
        self._keys: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)

    def _hash(self, rows: Choices) -> NDArray[np.uint64]:
        keys: NDArray[np.uint64] = (rows.astype(np.uint64) * self._powers).sum(axis=1, dtype=np.uint64)
        return keys

    def _is_visited(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if not len(self._visited):
            return np.zeros(len(keys), dtype=np.bool_)
        places = np.searchsorted(self._visited, keys)
        found: NDArray[np.bool_] = self._visited.take(places, mode="clip") == keys
        return found

    def offer(self, rows: Choices, scores: NDArray[np.float64]) -> bool:
        """Takes what is better than the worst kept; True when the pool changed."""
        if len(self.scores) == self._count:
            better = np.flatnonzero(scores > self.scores[-1])
            if not better.size:
                return False
            rows, scores = rows[better], scores[better]
        keys, first = np.unique(self._hash(rows), return_index=True)
        fresh = ~(self._is_visited(keys) | (keys[:, None] == self._keys).any(axis=1))
        if not fresh.any():
            return False
        first = first[fresh]
        order = np.argsort(-np.concatenate([self.scores, scores[first]]), kind="stable")[: self._count]
        self.rows = np.concatenate([self.rows, rows[first]])[order]
        self.scores = np.concatenate([self.scores, scores[first]])[order]
        self._keys = np.concatenate([self._keys, keys[fresh]])[order]
        return True
