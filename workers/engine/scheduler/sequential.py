"""One operator after the other, in the order of declaration: what AutoTVM does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.shown import short
from workers.engine.scheduler.standing import active, counted

TRIALS = 1000.0
"""An operator's, where the run has no limit to share out: AutoTVM's."""


class Sequential:
    """By index, in equal parts of the seconds that slots may have and of the run's `trials` (neither: TRIALS an operator). Of
    two limits an operator's turn ends with the part that is spent first.

    `left` tells the seconds that are left of the run: what no slot had, as warm-up and decisions, is nobody's part. Nor are
    trials that timed something again (`repeated`).

    What an operator did not take, as it was finished before, is shared among those that are still to come. When all have
    had theirs, what is left goes to those that are not finished, the least spent on first.
    """

    def __init__(
        self,
        left: Callable[[], float] | None = None,
        trials: float | None = None,
        patience: int | None = None,
        repeated: Callable[[], int] = lambda: 0,
    ) -> None:
        if trials is not None and not (math.isfinite(trials) and trials > 0):
            raise ValueError(f"trials {trials} of a run must be greater than 0")
        counted(patience)
        self._left, self._trials = left, trials
        self._patience, self._repeated = patience, repeated
        self._at = -1

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has what is left of the operator's part, 1 when it had nothing of it."""
        going = active(progress, self._patience)
        if not going:
            return None
        coming = [one for one in going if one.operator.index >= self._at]
        limits = self._limits(progress)
        passed = [sum(map(spent, progress)) - sum(map(spent, coming)) for spent, _ in limits]
        while coming:
            parts = [(whole - gone) / len(coming) for (_, whole), gone in zip(limits, passed, strict=True)]
            one = coming.pop(0)
            mine = [spent(one) for spent, _ in limits]
            if all(spent < part for spent, part in zip(mine, parts, strict=True)):
                self._at = one.operator.index
                left = min(1 - spent / part for spent, part in zip(mine, parts, strict=True))
                return Decision(self._at, "sequential", {"left": short(left)})
            passed = [gone + spent for gone, spent in zip(passed, mine, strict=True)]
        self._at = max(one.operator.index for one in progress) + 1
        spent, _ = limits[0]
        return Decision(min(going, key=spent).operator.index, "remainder")

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON."""
        return {"at": self._at}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._at = state.get("at", self._at)

    def _limits(self, progress: Sequence[Progress]) -> list[tuple[Callable[[Progress], float], float]]:
        """What an operator has spent, and what is parted, of each limit; of trials, those of the warm-up are some."""
        limits: list[tuple[Callable[[Progress], float], float]] = []
        if self._left is not None:
            limits.append((lambda one: one.seconds, self._left() + sum(one.seconds for one in progress)))
        if self._trials is not None or not limits:
            whole = TRIALS * len(progress) if self._trials is None else self._trials - self._repeated()
            limits.append((lambda one: float(len(one.curve)), whole))
        return limits
