"""One operator after the other, in the order of declaration: what AutoTVM does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import active, short


class Sequential:
    """By index; moves on when the operator is finished or has had its share: its `slots` (missing: one slot), or, where
    `seconds` are given, so many seconds of slots, the same for every operator.

    When all have had theirs, what is left of the budget goes to those that are not finished, the least past its share
    first.
    """

    def __init__(
        self, slots: Mapping[int, int] | None = None, seconds: float | None = None, patience: int | None = None
    ) -> None:
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise ValueError(f"seconds {seconds} of an operator must be greater than 0")
        self._slots = dict(slots or {})
        self._seconds = seconds
        self._patience = patience

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has what is left of the operator's share, 1 when it had nothing of it."""
        going = active(progress, self._patience)
        if not going:
            return None
        for one in going:
            if self._left(one) > 0:
                return self._decision(one, "sequential")
        return self._decision(max(going, key=self._left), "remainder")

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON. The order follows from what was given; a share of the seconds is what it was when the run began."""
        return {"seconds": self._seconds}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._seconds = state.get("seconds", self._seconds)

    def _decision(self, one: Progress, rule: str) -> Decision:
        return Decision(one.operator.index, rule, {"left": short(self._left(one))})

    def _left(self, one: Progress) -> float:
        if self._seconds is not None:
            return 1 - one.seconds / self._seconds
        return 1 - one.slots / self._slots.get(one.operator.index, 1)
