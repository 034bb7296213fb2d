"""Latency against tuning time: the steps at which the sum over the operators became smaller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

INFINITE = float("inf")


def settle(rows: list[list[Any]], row: Sequence[Any]) -> None:
    """Adds a row to `rows`, whose last column falls strictly from row to row.

    A figure that rises was corrected: a lucky one was measured once more. What lay below it was never reached, so that
    the first of those rows keeps its place and gets the corrected figure.
    """
    place = list(row)
    while rows and rows[-1][-1] <= row[-1]:
        place = rows.pop()
    rows.append([*place[:-1], row[-1]])


def summed(operators: Sequence[Sequence[Sequence[Any]]], weights: Sequence[float]) -> Curve:
    """The sum over operators with rows (seconds of tuning, ..., latency in s), each settled by itself.

    A sum that is settled as a whole would date what one operator gained back to the lucky figure of another.
    """
    best, sums = [INFINITE] * len(operators), dict[float, float]()
    rows = [(row[0], operator, row[-1]) for operator, settled in enumerate(operators) for row in settled]
    for seconds, operator, latency in sorted(rows, key=lambda row: row[0]):
        best[operator] = latency
        sums[seconds] = sum(weight * one for weight, one in zip(weights, best, strict=True))
    return Curve.of((seconds, None if latency == INFINITE else latency) for seconds, latency in sums.items())


@dataclass(frozen=True)
class Curve:
    """(seconds of tuning, sum of weight x best latency in seconds), both strictly monotone; begins when every operator
    has been measured once."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, pairs: Iterable[Sequence[float | None]]) -> Curve:
        """The improvements among (seconds, latency | None) in order of time, none below what was corrected later."""
        rows: list[list[float]] = []
        for seconds, latency in pairs:
            if seconds is not None and latency is not None:
                settle(rows, (float(seconds), float(latency)))
        return cls(tuple((seconds, latency) for seconds, latency in rows))

    @property
    def final(self) -> float | None:
        """The smallest sum, None when some operator was never measured."""
        return self.points[-1][1] if self.points else None

    @property
    def complete(self) -> float | None:
        """Seconds until every operator had a latency."""
        return self.points[0][0] if self.points else None

    @property
    def first(self) -> float | None:
        """The sum when every operator had a latency."""
        return self.points[0][1] if self.points else None

    def at(self, seconds: float) -> float | None:
        """The sum after this much tuning."""
        reached = [latency for moment, latency in self.points if moment <= seconds]
        return reached[-1] if reached else None

    def time_to(self, latency: float) -> float | None:
        """Seconds until the sum was at most `latency`."""
        return next((moment for moment, reached in self.points if reached <= latency), None)
