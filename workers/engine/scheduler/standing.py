"""How operators stand, as several schedulers ask it: who is finished, who comes next, whose turn it is without a choice."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from workers.engine.ports import Decision, Progress


def counted(patience: int | None, more: int = 0) -> None:
    """Raises ValueError for a `patience` with which every operator would be finished at once, and for slots `more` than the
    others had that are under 0."""
    if patience is not None and patience < 1:
        raise ValueError(f"patience {patience} must be 1 configuration or more, or none for no such end")
    if more < 0:
        raise ValueError(f"rescue or limit {more} must be 0 or more: slots beyond the others' for what has not run yet")


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
