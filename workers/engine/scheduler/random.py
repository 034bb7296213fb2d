"""Slots at random: DynaTune 5.2's static rival, and with finished operators left out 5.3's dynamic one (DA + Rand)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.standing import active, counted


class Random:
    """Every operator that is not finished with the same chance.

    A slot that would fall on a finished operator is given to another one, as "dynamic allocation" does. Without
    `patience` (configurations proposed without improvement) only an exhausted operator is finished: the static rival.
    """

    def __init__(self, seed: int, patience: int | None = None) -> None:
        counted(patience)
        self._rng = np.random.default_rng([seed, *b"random"])
        self._patience = patience

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`."""
        going = active(progress, self._patience)
        if not going:
            return None
        chosen = going[int(self._rng.integers(len(going)))]
        return Decision(chosen.operator.index, "random", {"among": len(going)})

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON."""
        return {"rng": self._rng.bit_generator.state}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._rng.bit_generator.state = state["rng"]
