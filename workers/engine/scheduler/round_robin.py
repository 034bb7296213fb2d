"""Static allocation in circular order (DynaTune 5.2); with finished operators left out it is DynaTune 5.3's DA + RR."""

from __future__ import annotations

from collections.abc import Sequence

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.standing import active, counted, next_in_circle


class RoundRobin:
    """Every operator that is not finished, one after the other by index."""

    def __init__(self, patience: int | None = None) -> None:
        counted(patience)
        self._patience = patience
        self._last = -1
        self._slots: dict[int, int] = {}

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`."""
        going = active(progress, self._patience)
        if not going:
            return None
        self._last = next_in_circle(going, self._last).operator.index
        return Decision(self._last, "round_robin")

    def observe(self, progress: Progress) -> None:
        """Nothing is learned; a run resumed behind a checkpoint finds its place again by whose slots are over. Who is only
        found to be faster, or slower, had none."""
        operator = progress.operator.index
        if progress.slots > self._slots.get(operator, 0):
            self._last = operator
        self._slots[operator] = progress.slots

    def state(self) -> State:
        """JSON."""
        return {"last": self._last, "slots": {str(operator): slots for operator, slots in self._slots.items()}}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._last = state["last"]
        self._slots = {int(operator): slots for operator, slots in state.get("slots", {}).items()}
