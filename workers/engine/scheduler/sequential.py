"""One operator after the other, in the order of declaration: what AutoTVM does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import active, short

TRIALS = 1000.0
"""An operator's, where the run has no limit to share out: AutoTVM's."""


class Sequential:
    """By index, in equal parts of the seconds that slots may have or else of the run's `trials` (neither: TRIALS an operator).

    `left` tells the seconds that are left of the run: what no slot had, as warm-up and decisions, is nobody's part.

    What an operator did not take, as it was finished before, is shared among those that are still to come. When all have
    had theirs, what is left goes to those that are not finished, the least spent on first.
    """

    def __init__(
        self, left: Callable[[], float] | None = None, trials: float | None = None, patience: int | None = None
    ) -> None:
        if trials is not None and not (math.isfinite(trials) and trials > 0):
            raise ValueError(f"trials {trials} of a run must be greater than 0")
        self._left, self._trials = left, trials
        self._patience = patience
        self._at = -1

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has what is left of the operator's part, 1 when it had nothing of it."""
        going = active(progress, self._patience)
        if not going:
            return None
        coming = [one for one in going if one.operator.index >= self._at]
        passed = sum(map(self._spent, progress)) - sum(map(self._spent, coming))
        while coming:
            part = (self._whole(progress) - passed) / len(coming)
            one = coming.pop(0)
            if self._spent(one) < part:
                self._at = one.operator.index
                return Decision(self._at, "sequential", {"left": short(1 - self._spent(one) / part)})
            passed += self._spent(one)
        self._at = max(one.operator.index for one in progress) + 1
        return Decision(min(going, key=self._spent).operator.index, "remainder")

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON."""
        return {"at": self._at}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._at = state.get("at", self._at)

    def _spent(self, one: Progress) -> float:
        return one.seconds if self._left is not None else len(one.curve)

    def _whole(self, progress: Sequence[Progress]) -> float:
        """What is parted; of trials, those of the warm-up are some."""
        if self._left is not None:
            return self._left() + sum(one.seconds for one in progress)
        return TRIALS * len(progress) if self._trials is None else self._trials
