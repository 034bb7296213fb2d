"""Random configurations that the rules of the machine expect something of.

In the whole space of a convolution hardly any configuration drawn by chance is faster than a first one: of 16 an operator of
MobileNetV2 (two cores with AVX2) one in 250 was, the median took five times as long, and they took longest to compile. Of the
best of 64 by the rules one in 30 was, at 1.75 times in the median, and of the best of 8 near a first one, one in 6. With the
best of 32 there a first plan of 16 took 5.1 % off the sum of operators in place of 2.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from workers.engine.explorer.adjacency import Adjacency
from workers.engine.gpu import Gpu
from workers.engine.history import SketchHistory
from workers.engine.machine import Machine
from workers.engine.rules import rules_penalty, rules_tell
from workers.engine.space import Choices, Sketch

ANYWHERE, NEAR = 64, 32
"""Of how many, drawn from the whole sketch or near the best known, the one with the fewest rules broken is taken."""
BEST = 4
"""Known configurations, the fastest, near which is drawn."""
MOVES = 3
"""Knobs, at most, that take a neighbouring option."""
ROUNDS = 8
"""After which what is missing is drawn by chance alone."""


class InformedDraws:
    """Draws from `sketch` in place of `Sketch.unvisited`: half near the fastest in `seen`, half anywhere. Where the rules of
    the `machine` say nothing of the sketch, each is as good as any other."""

    def __init__(self, sketch: Sketch, machine: Machine | Gpu, seen: SketchHistory) -> None:
        self._sketch, self._seen = sketch, seen
        self._machine = machine
        self._anywhere, self._near = (ANYWHERE, NEAR) if rules_tell(sketch, machine) else (1, 1)

    def unvisited(self, rng: np.random.Generator, count: int, visited: Collection[tuple[int, ...]]) -> Choices:
        """See `Sketch.unvisited`."""
        found: dict[tuple[int, ...], None] = {}
        for _ in range(ROUNDS):
            missing = count - len(found)
            if missing < 1:
                break
            new = (row for row in self._drawn(rng, missing) if row not in visited)
            found.update(dict.fromkeys(new))
        rows = np.asarray(list(found)[:count], dtype=np.int32).reshape(-1, len(self._sketch.knobs))
        rest = self._sketch.unvisited(rng, count - len(rows), {*visited, *found})
        return np.concatenate([rows, rest])

    def _drawn(self, rng: np.random.Generator, count: int) -> Iterator[tuple[int, ...]]:
        best = self._best()
        # Of single ones, too, every other.
        near = int(count / 2 + rng.random()) if len(best) and self._sketch.size > 1 else 0
        if near:
            yield from self._winners(self._beside(rng, best, self._near * near), self._near)
        yield from self._winners(self._sketch.random(rng, self._anywhere * (count - near)), self._anywhere)

    def _best(self) -> Choices:
        """The fastest known, (n, knobs)."""
        speeds = np.asarray(self._seen.speeds)
        order = np.argsort(-speeds, kind="stable")[:BEST]
        rows = [self._seen.choices[place] for place in order if speeds[place] > 0]
        return np.asarray(rows, dtype=np.int32).reshape(-1, len(self._sketch.knobs))

    def _beside(self, rng: np.random.Generator, best: Choices, count: int) -> Choices:
        """`count` of which each is one of `best` with one to `MOVES` moves, those within bounds."""
        adjacency, movable = Adjacency.of(self._sketch), np.flatnonzero(self._sketch.sizes > 1)
        rows = best[rng.integers(len(best), size=count)]
        moves = rng.integers(1, MOVES + 1, size=count)
        for move in range(MOVES):
            knobs, luck = movable[rng.integers(movable.size, size=count)], rng.random(count)
            still = np.flatnonzero(moves > move)
            rows[still, knobs[still]] = adjacency.moved(rows[still], knobs[still], luck[still])
        return self._sketch.runnable(rows)

    def _winners(self, drawn: Choices, size: int) -> list[tuple[int, ...]]:
        """Of every `size` of `drawn` (n, knobs), in their order, the one with the least penalty."""
        groups = drawn[: len(drawn) // size * size].reshape(-1, size, len(self._sketch.knobs))
        if not len(groups):
            return []
        rows = groups.reshape(-1, len(self._sketch.knobs))
        best = rules_penalty(self._sketch, rows, self._machine).reshape(-1, size).argmin(axis=1)
        return [tuple(row) for row in groups[np.arange(len(groups)), best].tolist()]
