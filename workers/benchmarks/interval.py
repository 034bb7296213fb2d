"""A median and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000
FEWEST = 5
"""The range of five values holds the true median with 94 %, that of four with 88 %: too far from 95 %."""
SMALL = 0.1
"""A median under it is told by a digit more."""


@dataclass(frozen=True)
class Interval:
    """Median of `count` values; `bounds` are the 2.5 % and 97.5 % quantiles of the medians of resamples, None where there
    are fewer than FEWEST values."""

    median: float
    bounds: tuple[float, float] | None
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Of at least one value; the bootstrap is seeded."""
        found = np.asarray(values, dtype=np.float64)
        median, count = float(np.median(found)), len(found)
        if count < FEWEST:
            return cls(median, None, count)
        rng = np.random.default_rng(0)
        medians = np.median(found[rng.integers(0, count, (RESAMPLES, count))], axis=1)
        low, high = np.percentile(medians, [2.5, 97.5])
        return cls(median, (float(low), float(high)), count)

    def __str__(self) -> str:
        """The median with its bounds, or with how few values it is of."""
        digits = 3 if 0 < abs(self.median) < SMALL else 2
        if self.bounds is None:
            return f"{self.median:.{digits}f} (n = {self.count})"
        low, high = self.bounds
        return f"{self.median:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
