"""One operator after the other, in the order of declaration: what AutoTVM does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import active


class Sequential:
    """By index; moves on when the operator is finished or has had its share of slots (missing share: one slot).

    When all have had theirs, what is left of the budget goes to those that are not finished, fewest slots past their
    share first.
    """

    def __init__(self, slots_per_operator: Mapping[int, int], patience: int | None = None) -> None:
        self._shares = dict(slots_per_operator)
        self._patience = patience

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`."""
        going = active(progress, self._patience)
        if not going:
            return None
        for one in going:
            if self._left(one) > 0:
                return Decision(one.operator.index, "sequential", {"slots_left": self._left(one)})
        chosen = max(going, key=self._left)
        return Decision(chosen.operator.index, "remainder", {"slots_left": self._left(chosen)})

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON; the order follows from the slots already given."""
        return {}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""

    def _left(self, one: Progress) -> int:
        return self._shares.get(one.operator.index, 1) - one.slots
