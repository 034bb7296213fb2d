"""What a slot's decision told of the best time after it: the same for the page, the report and the comparisons.

`decision.belief` has it at several numbers of configurations, `x`, of the operator as a whole: `mean_ms` is the mean of the
curve that is believed in, and the best will be from `low_ms` to what it was before the slot with a chance of CHANCE.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHANCE = 0.8


@dataclass(frozen=True)
class Foretold:
    """Of the best time in seconds after a slot: its `mean`, and from `low` to `before` is where it will be with a chance of
    CHANCE."""

    mean: float
    low: float
    before: float

    def holds(self, after: float) -> bool:
        """Whether that is what came. A best that was measured again may be slower than it was before."""
        return self.low <= after <= self.before


def foretold(belief: Mapping[str, Any] | None, configurations: int | None, before: float | None) -> Foretold | None:
    """For as many configurations as the slot came to, which may be more or fewer than was thought; None where nothing was
    told, as of an operator's first slot."""
    if not belief or "low_ms" not in belief or configurations is None or before is None:
        return None
    mean, low = (_between(belief["x"], belief[name], configurations) / 1e3 for name in ("mean_ms", "low_ms"))
    return Foretold(mean, min(low, before), before)


def _between(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """Linear between the points, and the outermost beyond them."""
    place = bisect_left(xs, x)
    if place in (0, len(xs)):
        return ys[max(0, place - 1)]
    part = (x - xs[place - 1]) / (xs[place] - xs[place - 1])
    return ys[place - 1] + part * (ys[place] - ys[place - 1])
