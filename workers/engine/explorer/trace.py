"""How quickly a walk found what it found."""

from __future__ import annotations

import math

from workers.engine.explorer.pool import Pool

_CLOSE = math.log2(1.01)


class Trace:
    """The best new score after each step of one call.

    Chameleon (4.1, figure 7a) counts the search steps until an explorer has reached its solution: here, until its best
    score is within 1 % of its final best, scores being log2 speeds. Explorers step at different widths, so evaluations
    of the score are counted too.
    """

    def __init__(self) -> None:
        self._best: list[float] = []
        self._evaluations: list[int] = []

    def step(self, pool: Pool, evaluations: int) -> None:
        """A step scored `evaluations` configurations and offered them to `pool`."""
        self._best.append(float(pool.scores[0]) if len(pool.scores) else -math.inf)
        self._evaluations.append((self._evaluations[-1] if self._evaluations else 0) + evaluations)

    @property
    def figures(self) -> dict[str, int]:
        """ "steps_to_best" (0: the starting points were as good), "evaluations" and "evaluations_to_best"."""
        if not self._best:
            return {}
        close = next(i for i, best in enumerate(self._best) if best >= self._best[-1] - _CLOSE)
        return {
            "steps_to_best": close,
            "evaluations": self._evaluations[-1],
            "evaluations_to_best": self._evaluations[close],
        }
