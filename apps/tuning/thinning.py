"""Fewer of many rows, evenly chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Sample(Generic[_T]):
    """Every n-th of a stream, evenly chosen, fewer than twice `most` whatever its length."""

    def __init__(self, most: int) -> None:
        self.kept: list[_T] = []
        self._most, self._every, self._count = most, 1, 0

    def add(self, row: _T) -> None:
        if self._count % self._every == 0:
            self.kept.append(row)
            if len(self.kept) >= 2 * self._most:
                self.kept = self.kept[::2]
                self._every *= 2
        self._count += 1


def thinned(rows: Sequence[_T], most: int) -> list[_T]:
    """At most `most` of them, evenly chosen, the first and the last among them."""
    if len(rows) <= most:
        return list(rows)
    if most < 2:
        return list(rows[-most:]) if most else []
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]
