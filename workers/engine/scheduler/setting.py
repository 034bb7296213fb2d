"""What every scheduler is built from, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workers.engine.ports import Progress, Scheduler


@dataclass(frozen=True)
class Setting:
    """Of one run. `peak_flops` is the target's ceiling in FLOP/s.

    `latency`: the network's after warm-up in seconds (None: taken from the first call of `choose`).
    `slots_per_operator`: the sequential scheduler's shares by operator index (missing: one slot).
    `patience`: finishes an operator after so many configurations without improvement (None: the scheduler's own).
    """

    seed: int
    peak_flops: float
    latency: float | None = None
    slots_per_operator: Mapping[int, int] = field(default_factory=dict)
    patience: int | None = None


Factory = Callable[[Setting], Scheduler]


def stale(curve: Sequence[float]) -> int:
    """Configurations measured since the best time was found (DynaTune 5.3 finishes an operator after 200)."""
    count = 0
    for earlier in reversed(curve[:-1]):
        if earlier > curve[-1]:
            break
        count += 1
    return count


def active(progress: Sequence[Progress], patience: int | None) -> list[Progress]:
    """Operators that are not finished, by index."""
    going = [one for one in progress if not one.exhausted and (patience is None or stale(one.curve) < patience)]
    return sorted(going, key=lambda one: one.operator.index)


def next_in_circle(operators: Sequence[Progress], last: int) -> Progress:
    """The first of `operators` (by index, not empty) behind index `last`, starting over at the end."""
    return next((one for one in operators if one.operator.index > last), operators[0])
