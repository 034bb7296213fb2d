"""Best first: AutoTVM's sampler."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Sketch


class Greedy:
    """The candidates with the highest scores. The random share of a plan (epsilon) is the proposer's business."""

    def __init__(self, seed: int = 0) -> None:
        """`seed` is what every sampler gets; nothing is random here."""
        self.figures: dict[str, int] = {}

    def sample(
        self,
        sketch: Sketch,
        candidates: Choices,
        scores: NDArray[np.float64],
        count: int,
        visited: Collection[tuple[int, ...]],
    ) -> Choices:
        return candidates[:count]
