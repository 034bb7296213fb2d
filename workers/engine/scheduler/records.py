"""The record theory in the belief's place: slots to the operator that is expected to take most off the latency in a second."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workers.engine.belief import Records
from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import (
    active,
    band,
    configurations_ahead,
    latency_share,
    next_in_circle,
    rescue,
    short,
    told_low,
)


class RecordGain:
    """weight x best x the share of it that the record theory (`Records.expected`) takes off in the time of a slot, which is the
    same for all operators: an operator whose configurations take long gets fewer of them into it.

    In the place of DynaTune's index (4.2) and its belief (4.3). It has no bonus for what is uncertain: no expectation is 0, and
    that of an operator that waits falls behind those of others only as they are explored. Operators that never had a slot go
    first, the largest share of the latency before the others, as in Algorithm 1.
    Rules told: "rescue", "gamma", "belief" (another than whose turn it is), "round_robin".
    """

    def __init__(self, patience: int | None = None, limit: int = 4) -> None:
        self._patience, self._limit = patience, limit
        self._last = -1
        self._records = Records()

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the chosen operator's expected reduction and a table of all, in ms a slot."""
        going = active(progress, self._patience)
        if not going:
            return None
        circular = next_in_circle(going, self._last).operator.index
        decision = rescue(going, self._limit) or self._largest(going, slot_seconds, circular)
        self._last = decision.operator
        return decision

    def observe(self, progress: Progress) -> None:
        """Takes up what came of the slot."""
        self._records.observe(progress.operator.index, progress.curve)

    def foreseen(self, progress: Progress, configurations: float) -> float:
        """See `Foreseeing`."""
        return progress.best * (1 - self._records.expected(progress.curve, configurations))

    def state(self) -> State:
        """JSON."""
        return {"last": self._last, "records": self._records.state()}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._last = state["last"]
        self._records.restore(state["records"])

    def _largest(self, going: Sequence[Progress], slot_seconds: float, circular: int) -> Decision:
        untried = [one for one in going if one.slots == 0]
        if untried:
            chosen, rule, terms = max(untried, key=_share), "gamma", dict[str, Any]()
        else:
            found = {one.operator.index: self._expected(one, slot_seconds) for one in going}
            chosen = max(going, key=lambda one: (found[one.operator.index], _share(one)))
            index = chosen.operator.index
            rule = "round_robin" if index == circular else "belief"
            terms = {
                "r_ms": short(found[index]),
                "operators": {str(index): [short(value)] for index, value in found.items()},
                "decided_by_belief": index != circular,
                "belief": self._told(chosen, slot_seconds),
            }
        return Decision(
            chosen.operator.index, rule, {**terms, "differs_from_round_robin": chosen.operator.index != circular}
        )

    def _expected(self, one: Progress, slot_seconds: float) -> float:
        """Reduction in ms that a slot is expected to bring; 0 without a valid configuration."""
        return 1e3 * _share(one) * self._records.expected(one.curve, configurations_ahead(one, slot_seconds))

    def _told(self, one: Progress, slot_seconds: float) -> dict[str, Any]:
        """See `messages.foretold`."""
        configurations = band(one, slot_seconds)
        return {
            "x": [len(one.curve) + count for count in configurations],
            "mean_ms": [short(1e3 * self.foreseen(one, count)) for count in configurations],
            "low_ms": told_low(self._records, one, configurations),
        }


def _share(one: Progress) -> float:
    """Seconds of the network's latency spent in it; 0 while that is infinite."""
    share = latency_share(one)
    return share if math.isfinite(share) else 0.0
