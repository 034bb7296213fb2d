"""What every scheduler is built from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workers.engine.ports import Scheduler


@dataclass(frozen=True)
class Setting:
    """Of one run. `peak_flops` is the target's ceiling in FLOP/s; seconds that are `left` of it at any moment and
    `trials` in all are its limits, None where it has none. `repeated` tells how many of the trials so far timed again what
    was known: they are on no operator's curve."""

    seed: int
    peak_flops: float
    left: Callable[[], float] | None = None
    trials: float | None = None
    repeated: Callable[[], int] = lambda: 0


Factory = Callable[..., Scheduler]
"""Makes a scheduler from a `Setting` and parameters by name."""
