"""Parallel simulated annealing over knobs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workers.engine.checkpoint import pack_choices, pack_generator, unpack_choices, unpack_generator
from workers.engine.explorer.pool import Pool
from workers.engine.explorer.starts import elites, exhaust
from workers.engine.explorer.trace import Trace
from workers.engine.ports import Score, State
from workers.engine.space import Choices, Sketch

DIFFERENCES = ("log", "speed", "flops")
FLOPS = 1e11
"""Of a fast configuration: beside it a temperature of 1 forgives nothing."""


class SimulatedAnnealing:
    """AutoTVM's explorer (Chameleon, Table 8): every chain moves one random knob to another random value a step.

    A move to a score lower by d is accepted with probability exp(-d / temperature); the temperature falls linearly from
    `hot` to 0 within a call. `differences` says of what d is one: "log", of log2 speeds, so that temperature 1 forgives
    half the speed with e^-1, or "speed", of speeds relative to the best (program: the raw scores of trees on normalised
    speed), so that it forgives all of it with e^-1 and a walk begins nearly at random, or "flops", of FLOP/s (AdaTune's
    program, whose forest learns these), of which it forgives none: every chain climbs.
    Chains persist from call to call; an explorer walks one sketch and starts over when it is given another.

    The paper's walk is steps=500, patience=50 with 128 chains. The default is shorter because persisting chains go on
    where they stopped and a product's slot proposes 8-16 candidates, not 64. Two additions, off in the paper's preset:
    `elite` is the share of chains that each call moves to the best-scored visited configurations, and `exhaustive`
    scores a sketch with no more configurations than the walk would look at completely.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        chains: int = 128,
        steps: int = 100,
        patience: int = 50,
        hot: float = 1.0,
        elite: float = 0.25,
        exhaustive: bool = True,
        differences: str = "log",
    ) -> None:
        if chains < 1 or steps < 1 or patience < 1 or hot < 0 or not 0 <= elite <= 1:
            raise ValueError("chains, steps and patience start at 1, hot at 0, and elite is a share from 0 to 1")
        if differences not in DIFFERENCES:
            raise ValueError(f"differences {differences!r} is unknown; use one of {', '.join(DIFFERENCES)}")
        self._rng = rng
        self._chains = chains
        self._steps = steps
        self._patience = patience
        self._hot = hot
        self._elite = elite
        self._exhaustive = exhaustive
        self._unit = {"log": None, "speed": 1.0, "flops": FLOPS}[differences]
        self._points: Choices | None = None
        self.figures: dict[str, int] = {}
        self.begun: Choices | None = None

    def explore(self, sketch: Sketch, score: Score, count: int, visited: set[tuple[int, ...]]) -> tuple[Choices, int]:
        pool = Pool(count, len(sketch.knobs), visited)
        if whole := exhaust(sketch, score, pool, self._chains * self._steps if self._exhaustive else 0):
            self.figures, self.begun = whole.figures, None
            return pool.rows, 1
        points = self._begin(sketch, score, visited)
        walked = self._walk(sketch, score, points, np.flatnonzero(sketch.sizes > 1), pool)
        return pool.rows, walked

    def _begin(self, sketch: Sketch, score: Score, visited: set[tuple[int, ...]]) -> Choices:
        points = self._points
        # Another sketch may have as many knobs: a point is kept only if it is inside.
        if points is None or points.shape[1] != len(sketch.knobs) or (points >= sketch.sizes).any():
            points = sketch.random(self._rng, self._chains)
        best = elites(sketch, score, visited, int(self._elite * self._chains))
        return np.concatenate([best, points[len(best) :]])

    def _walk(self, sketch: Sketch, score: Score, points: Choices, movable: NDArray[np.intp], pool: Pool) -> int:
        """Moves all chains together until the steps are used up or the pool is stable; returns the steps walked."""
        rows = np.arange(len(points))
        shape = (self._steps, len(points))
        knobs = movable[self._rng.integers(0, movable.size, size=shape)]
        others = (self._rng.random(shape) * (sketch.sizes[knobs] - 1)).astype(np.int32)
        luck = np.log(1.0 - self._rng.random(shape))
        scores = score(points)
        pool.offer(points, scores)
        self.begun = pool.rows
        trace = Trace()
        trace.step(pool, len(points))
        step, idle = 0, 0
        while step < self._steps and idle < self._patience:
            moved = points.copy()
            knob, other = knobs[step], others[step]
            moved[rows, knob] = other + (other >= points[rows, knob])
            reached = score(moved)
            temperature = self._hot * (1.0 - step / self._steps)
            rise = reached - scores if self._unit is None else self._unit * (np.exp2(reached) - np.exp2(scores))
            accepted = rise >= luck[step] * temperature
            points = np.where(accepted[:, None], moved, points)
            scores = np.where(accepted, reached, scores)
            idle = 0 if pool.offer(moved, reached) else idle + 1
            trace.step(pool, len(moved))
            step += 1
        self._points = points
        self.figures = trace.figures
        return step

    def state(self) -> State:
        points = None if self._points is None else pack_choices(self._points)
        return {"rng": pack_generator(self._rng), "points": points}

    def restore(self, state: State) -> None:
        unpack_generator(self._rng, state["rng"])
        self._points = None if state["points"] is None else unpack_choices(state["points"])
