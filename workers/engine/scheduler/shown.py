"""What of a scheduler's belief is shown: the terms that several of them tell, in ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.engine.belief import Belief, Records
from workers.engine.ports import Progress
from workers.engine.scheduler.standing import configurations_ahead, work
from workers.messages.foretold import CHANCE

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
