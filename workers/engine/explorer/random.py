"""Random search: the rival that every explorer has to beat."""

from __future__ import annotations

import numpy as np

from workers.engine.checkpoint import pack_generator, unpack_generator
from workers.engine.ports import Score, State
from workers.engine.space import Choices, Sketch


class RandomExplorer:
    """Draws uniformly among the unvisited configurations; the score orders what was drawn and chooses nothing."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.figures: dict[str, int] = {}
        self.begun: Choices | None = None

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        drawn = sketch.unvisited(self._rng, count, visited)
        if len(drawn) > 1:
            drawn = drawn[np.argsort(-score(drawn), kind="stable")]
        self.begun = drawn
        return drawn, 0

    def state(self) -> State:
        return {"rng": pack_generator(self._rng)}

    def restore(self, state: State) -> None:
        unpack_generator(self._rng, state["rng"])
