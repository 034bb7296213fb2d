"""A median and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """Median of n values and the 2.5 % and 97.5 % quantiles of the medians of resamples."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Of at least one value; the bootstrap is seeded."""
        found = np.asarray(values, dtype=np.float64)
        rng = np.random.default_rng(0)
        medians = np.median(found[rng.integers(0, len(found), (RESAMPLES, len(found)))], axis=1)
        low, high = np.percentile(medians, [2.5, 97.5])
        return cls(float(np.median(found)), float(low), float(high), len(found))

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"
