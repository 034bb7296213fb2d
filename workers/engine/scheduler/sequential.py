"""One operator after the other, in the order of declaration: what AutoTVM does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import active, short

TRIALS = 1000.0
"""An operator's, where the run has no limit to share out: AutoTVM's."""


class Sequential:
    """By index, in equal parts of the run's `seconds` of slots or else of its `trials` (neither: TRIALS an operator).

    What an operator did not take, as it was finished before, is shared among those that are still to come. When all have
    had theirs, what is left goes to those that are not finished, the least spent on first.
    """

    def __init__(self, seconds: float | None = None, trials: float | None = None, patience: int | None = None) -> None:
        for name, whole in (("seconds", seconds), ("trials", trials)):
            if whole is not None and not (math.isfinite(whole) and whole > 0):
                raise ValueError(f"{name} {whole} of a run must be greater than 0")
        self._seconds, self._trials = seconds, trials
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
        """JSON; the seconds are those of the time when the run began."""
        return {"seconds": self._seconds, "at": self._at}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._seconds, self._at = state.get("seconds", self._seconds), state.get("at", self._at)

    def _spent(self, one: Progress) -> float:
        return one.seconds if self._seconds is not None else len(one.curve)

    def _whole(self, progress: Sequence[Progress]) -> float:
        """What is parted; of trials, those of the warm-up are some."""
        if self._seconds is not None:
            return self._seconds
        return TRIALS * len(progress) if self._trials is None else self._trials
