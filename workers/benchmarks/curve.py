"""Latency against tuning time: the steps at which the sum over the operators became smaller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """(seconds of tuning, sum of weight x best latency in seconds), both strictly monotone; begins when every operator
    has been measured once."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, pairs: Iterable[Sequence[float | None]]) -> Curve:
        """The improvements among (seconds, latency | None) in order of time."""
        points: list[tuple[float, float]] = []
        for seconds, latency in pairs:
            if seconds is not None and latency is not None and (not points or latency < points[-1][1]):
                points.append((float(seconds), float(latency)))
        return cls(tuple(points))

    @property
    def final(self) -> float | None:
        """The smallest sum, None when some operator was never measured."""
        return self.points[-1][1] if self.points else None

    @property
    def complete(self) -> float | None:
        """Seconds until every operator had a latency."""
        return self.points[0][0] if self.points else None

    def at(self, seconds: float) -> float | None:
        """The sum after this much tuning."""
        reached = [latency for moment, latency in self.points if moment <= seconds]
        return reached[-1] if reached else None

    def time_to(self, latency: float) -> float | None:
        """Seconds until the sum was at most `latency`."""
        return next((moment for moment, reached in self.points if reached <= latency), None)
