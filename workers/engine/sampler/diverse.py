"""Best first, but not more of the same: AutoTVM's diversity filter."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Sketch


class Diverse:
    """Greedy maximisation of the sum of scores plus `weight` for every option of a knob that the plan is the first to
    use: a submodular function, so that greedy comes within 1 - 1/e of the best plan (AutoTVM, NeurIPS 2018, equation 4;
    its program's weight is 1, and its last version leaves the scores out; Chameleon, figure 8, compares with it).

    Needs more candidates than it returns: give `Search` a `pool` of 2 or more.
    """

    def __init__(self, seed: int = 0, weight: float = 1.0) -> None:
        """`seed` is what every sampler gets; nothing is random here."""
        if weight < 0:
            raise ValueError(f"weight is a reward for new options and at least 0, not {weight}")
        self._weight = weight
        self.figures: dict[str, int] = {}

    def sample(
        self,
        sketch: Sketch,
        candidates: Choices,
        scores: NDArray[np.float64],
        count: int,
        visited: Collection[tuple[int, ...]],
    ) -> Choices:
        offsets = np.concatenate([[0], np.cumsum(sketch.sizes)]).astype(np.int64)
        options = candidates + offsets[:-1]
        unused = np.ones(offsets[-1], dtype=np.bool_)
        left = np.ones(len(candidates), dtype=np.bool_)
        picked: list[int] = []
        for _ in range(min(count, len(candidates))):
            gains = scores + self._weight * unused[options].sum(axis=1)
            best = int(np.argmax(np.where(left, gains, -np.inf)))
            picked.append(best)
            left[best] = False
            unused[options[best]] = False
        return candidates[picked]
