"""Evolutionary search over knobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.checkpoint import pack_generator, unpack_generator
from workers.engine.explorer.adjacency import Adjacency
from workers.engine.explorer.pool import Pool
from workers.engine.explorer.starts import elites, exhaust
from workers.engine.explorer.trace import Trace
from workers.engine.ports import Score, State
from workers.engine.space import STRUCTURE, Choices, Knob, Sketch

APART = ("parallel", "vectorize", STRUCTURE)
"""Knobs that are categories to every part, and instructions of another sort to TVM."""

METASCHEDULE: dict[str, Any] = {
    "population": 512,
    "generations": 4,
    "mutation": 0.85,
    "crossover": 0.0,
    "measured": 0.2,
    "epsilon": 0.0,
    "leap": 0.0,
    "pressure": 1.0,
    "exhaustive": False,
    "moves": {"tile": 0.9, "location": 0.05, "category": 0.03, "parallel": 0.02},
}
"""The numbers of TVM's MetaSchedule on a CPU: those of its EvolutionarySearch, and the shares of its mutators, which
leave a program in its sketch. Ansor's are a population of 2048 and a crossover of 0.05."""


class Evolutionary:
    """What Ansor (OSDI 2020, 5.1) and TVM's MetaSchedule search with, on knobs.

    A call begins with a population of which `measured` are the best-scored visited configurations and the rest random
    (both programs: 0.2). A generation draws its parents in proportion to their predicted speed (scores are log2
    speeds), sharpened by the exponent `pressure`. A child is, with probability `crossover`, a uniform crossover of two
    parents (Ansor: 0.05; MetaSchedule has none), else, with probability `mutation` (both: 0.85), a parent with one
    knob changed, else a copy. The knob is any, or with `moves`, weights by name or kind, one of a kind drawn by them
    (MetaSchedule's mutators; what has no weight is never changed). It takes a neighbouring option, a tile with one
    factor moved to another level as in both programs, or with probability `leap` any option. A share `epsilon` of each
    generation is random (both programs' 0.05 is a share of the plan instead, which is the proposer's).

    `METASCHEDULE` holds TVM's numbers. More and smaller generations and a higher pressure (the programs': 1) find better
    scores. With trees fitted to 200 points of a convolution, the best score of a call, log2 relative to the best of
    those points and averaged over four seeds and four calls, was 0.34 with the default's 8,448 evaluations, 0.26 with
    pressure 1, 0.14 with Ansor's population and generations, and 0.19 with annealing's 12,928. Nothing persists from
    call to call but the generator.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        population: int = 256,
        generations: int = 32,
        mutation: float = 0.85,
        crossover: float = 0.05,
        measured: float = 0.2,
        epsilon: float = 0.05,
        leap: float = 0.1,
        pressure: float = 4.0,
        exhaustive: bool = True,
        moves: Mapping[str, float] | None = None,
    ) -> None:
        shares = (mutation, crossover, measured, epsilon, leap)
        if population < 2 or generations < 1 or pressure < 0 or not all(0 <= share <= 1 for share in shares):
            raise ValueError(
                "population starts at 2, generations at 1, pressure at 0; mutation, crossover, measured, epsilon and "
                "leap are shares from 0 to 1"
            )
        self._rng = rng
        self._population = population
        self._generations = generations
        self._mutation, self._crossover, self._measured, self._epsilon, self._leap = shares
        self._pressure = pressure
        self._exhaustive = exhaustive
        if moves is not None and (not moves or min(moves.values()) < 0):
            raise ValueError(f"moves {dict(moves)} must be weights of 0 or more by knob name or kind, one at least")
        self._moves = moves
        self._near: tuple[Sketch, Adjacency] | None = None
        self.figures: dict[str, int] = {}
        self.begun: Choices | None = None

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        pool = Pool(count, len(sketch.knobs), visited)
        affordable = self._population * (self._generations + 1) if self._exhaustive else 0
        if whole := exhaust(sketch, score, pool, affordable):
            self.figures, self.begun = whole.figures, None
            return pool.rows, 1
        points = sketch.random(self._rng, self._population)
        best = elites(sketch, score, visited, int(self._measured * self._population))
        points[: len(best)] = best
        scores, trace = score(points), Trace()
        pool.offer(points, scores)
        self.begun = pool.rows
        trace.step(pool, len(points))
        for _ in range(self._generations):
            points = self._offspring(sketch, points, scores)
            scores = score(points)
            pool.offer(points, scores)
            trace.step(pool, len(points))
        self.figures = trace.figures
        return pool.rows, self._generations

    def _offspring(self, sketch: Sketch, points: Choices, scores: NDArray[np.float64]) -> Choices:
        fitness = np.exp2(self._pressure * (scores - scores.max()))
        size = len(points)
        parents, mates = self._rng.choice(size, size=(2, size), p=fitness / fitness.sum())
        luck = self._rng.random(size)
        crossing = luck < self._crossover
        taken = crossing[:, None] & (self._rng.random(points.shape) < 0.5)
        children: Choices = np.where(taken, points[mates], points[parents])
        mutating = np.flatnonzero(~crossing & (self._rng.random(size) < self._mutation))
        self._mutate(sketch, children, mutating)
        fresh = self._rng.random(size) < self._epsilon
        children[fresh] = sketch.random(self._rng, int(fresh.sum()))
        return children

    def _mutate(self, sketch: Sketch, children: Choices, rows: NDArray[np.intp]) -> None:
        """Changes one knob of each of `rows` in place."""
        movable, weights = self._movable(sketch)
        if not movable.size:
            return
        knobs = movable[self._rng.choice(movable.size, size=len(rows), p=weights)]
        leaps, luck = self._rng.random(len(rows)) < self._leap, self._rng.random(len(rows))
        moved = self._neighbours(sketch).moved(children[rows], knobs, luck)
        anywhere = (luck * sketch.sizes[knobs]).astype(np.int32)
        children[rows, knobs] = np.where(leaps | (moved == children[rows, knobs]), anywhere, moved)

    def _movable(self, sketch: Sketch) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Knobs that may change, and with what probability each; knobs of one kind share its weight."""
        many = [(i, self._kind(knob)) for i, knob in enumerate(sketch.knobs) if len(knob.options) > 1]
        if self._moves is None:
            weights = np.ones(len(many))
        else:
            kinds = [kind for _, kind in many]
            weights = np.asarray([self._moves.get(kind, 0.0) / kinds.count(kind) for kind in kinds])
        some = np.flatnonzero(weights > 0)
        places = np.asarray([many[i][0] for i in some], dtype=np.intp)
        return places, weights[some] / max(weights.sum(), 1e-300)

    def _kind(self, knob: Knob) -> str:
        """Under which name `moves` has it; the structure of a program is no knob of TVM's."""
        if knob.name in (self._moves or {}) or knob.name in APART:
            return knob.name
        return knob.kind

    def _neighbours(self, sketch: Sketch) -> Adjacency:
        if self._near is None or self._near[0] is not sketch:
            self._near = (sketch, Adjacency.of(sketch))
        return self._near[1]

    def state(self) -> State:
        return {"rng": pack_generator(self._rng)}

    def restore(self, state: State) -> None:
        unpack_generator(self._rng, state["rng"])
