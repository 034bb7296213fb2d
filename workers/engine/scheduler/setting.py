"""What every scheduler is built from, and what several of them share."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workers.engine.belief import Belief, Records
from workers.engine.ports import Decision, Progress, Scheduler
from workers.messages.foretold import CHANCE


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


def stale(one: Progress) -> int:
    """Configurations proposed since the best time was found (DynaTune 5.3 finishes an operator after 200). Programs that are
    known already, or too large to be worth compiling, count: most are where a space is nearly used up, and an operator that
    measures next to nothing would never be finished.

    Bests so far never rise, so that the best is found by halves: every decision asks it of every operator."""
    curve = one.curve
    measured = len(curve) - 1 - bisect_left(curve, -curve[-1], key=lambda seconds: -seconds) if curve else 0
    return measured + one.unbuilt


def active(progress: Sequence[Progress], patience: int | None) -> list[Progress]:
    """Operators that are not finished, by index."""
    going = [one for one in progress if not one.exhausted and (patience is None or stale(one) < patience)]
    return sorted(going, key=lambda one: one.operator.index)


def next_in_circle(operators: Sequence[Progress], last: int) -> Progress:
    """The first of `operators` (by index, not empty) behind index `last`, starting over at the end."""
    return next((one for one in operators if one.operator.index > last), operators[0])


def rescue(going: Sequence[Progress], limit: int) -> Decision | None:
    """A slot for an operator without a valid configuration, which makes the network's latency infinite: fewest slots
    first, until each had `limit` slots more than the others on average, or the time of so many: where each program takes
    seconds to fail, all of a short run would be over. None when there is none (any more)."""
    found = [one for one in going if math.isfinite(one.best)]
    slots, seconds = sum(one.slots for one in found), sum(one.seconds for one in found)
    most = limit + (slots / len(found) if found else math.inf)
    longest = most * seconds / slots if slots else math.inf

    def may(one: Progress) -> bool:
        if found and not slots:  # nobody knows yet how long a slot is
            return one.slots == 0 and most > 0
        return one.slots < most and one.seconds <= longest

    lost = [one for one in going if not math.isfinite(one.best) and may(one)]
    if not lost:
        return None
    chosen = min(lost, key=lambda one: one.slots)
    return Decision(chosen.operator.index, "rescue", {"without_valid_configuration": len(lost)})


def work(one: Progress) -> float:
    """FLOP; never 0, so that an operator without work still has a speed."""
    return max(one.operator.work, 1.0)


def latency_share(one: Progress) -> float:
    """Seconds of the network's latency spent in this operator."""
    return one.operator.weight * one.best


def configurations_ahead(one: Progress, slot_seconds: float) -> float:
    """Configurations that are measured in the time of a slot, the mean of all operators': that over the mean time of one
    (DynaTune's program), and no more than the space still has. A slot that is one plan, however long it takes, measures
    others."""
    if one.seconds > 0 and slot_seconds > 0 and one.own:
        ahead = slot_seconds * one.own / one.seconds
    else:
        ahead = len(one.curve) / max(one.slots, 1)
    return min(ahead, max(1.0, float(one.operator.size - len(one.curve))))


BAND = (0.5, 1.0, 2.0, 4.0)
"""Where it is told what is expected: after so many times the mean slot's time."""


def band(one: Progress, slot_seconds: float) -> list[int]:
    """Configurations from now at which it is told what is expected of an operator, see `BAND`, and after as many as its own
    slots measured so far: of those that the next one comes to it is told what was expected."""
    ahead = configurations_ahead(one, slot_seconds)
    counts = [slots * ahead for slots in BAND] + [one.own / one.slots if one.slots else ahead]
    return sorted({round(max(1.0, count)) for count in counts})


def told_low(records: Records, one: Progress, configurations: Sequence[int]) -> list[float]:
    """Time in ms that its best is not under after each of so many more `configurations`, with the chance that is told
    (`messages.foretold`). Six digits: many a gain is a tenth of a per cent."""
    return [float(f"{1e3 * records.least(one.curve, count, CHANCE):.6g}") for count in configurations]


def told_chain(belief: Belief, one: Progress) -> dict[str, Any]:
    """{"chain": ...} of the operator's last fit, {} where nothing was sampled: `ms`, of each of five quantiles over the walkers
    the best time that they expect after a slot, at every so many (`every`) of its steps, of which the first `burn` were
    thrown away. The slowest quantile comes first."""
    speeds = belief.chain
    if speeds is None:
        return {}
    times = 1e3 * work(one) / speeds
    lines = [[short(time) for time in line] for line in times.T.tolist()]
    steps, burn = belief.walked
    return {"chain": {"every": -(-steps // len(speeds)), "burn": burn, "ms": lines}}


def short(value: float) -> float:
    """Four significant digits, for terms that are shown."""
    return float(f"{value:.4g}")
