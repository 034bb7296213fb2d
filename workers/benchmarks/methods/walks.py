"""How soon explorers find the best of a space of millions: the recorded parts are too small for that question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.benchmarks.methods.arms import SA
from workers.engine.methods import METHODS, Method
from workers.engine.ports import CostModel, Explorer, Score
from workers.engine.space import Choices, Knob, Operator, Sketch, tilings
from workers.landscapes.parameters import resolved, walking
from workers.landscapes.synthetic import Hill

Array = NDArray[np.float64]

INNERMOST = 64
"""The largest factor that TVM's rules give to a tile's last loop."""
WALKS = 5
"""Of each explorer: after a random plan, and after each further one, of which either proposed half."""
CLOSE = math.log2(1.01)
"""Scores, which are log2 speeds, within 1 % of each other."""

Row = tuple[int, ...]


class Gain(NamedTuple):
    """How many times fewer steps an agent takes than annealing until its best score is within 1 % of its `own` best, and
    (`steps`) until it is within 1 % of what both come to; its `best` predicted speed over annealing's."""

    own: float
    steps: float
    best: float


def widened(sketch: Sketch) -> Sketch:
    """A part of a space with every tiling of its loops. Categories and locations stay: those that were left out are not known
    from the part."""
    return replace(sketch, knobs=tuple(_widened(knob) if knob.kind == "tile" else knob for knob in sketch.knobs))


def _widened(knob: Knob) -> Knob:
    extent, levels = math.prod(knob.options[0]), len(knob.options[0])
    return replace(knob, options=tuple(sorted({*tilings(extent, levels, INNERMOST), *knob.options})))


@dataclass(frozen=True)
class Walker:
    """An explorer that keeps, as it is asked to explore again, what it learned. A step is one of each of its chains, or of each
    of an agent's episodes (Chameleon, Tables 7 and 8: 128 of either, of 500 steps at most), however many walk together:
    `width` configurations are scored in it."""

    explorer: Explorer
    width: int

    @classmethod
    def of(cls, method: Method, operator: Operator, seed: int) -> Walker:
        numbers = resolved("explorer", method)
        width = numbers["episodes" if method.explorer == "ppo" else "chains"]
        return cls(method.make_explorer(operator, np.random.default_rng([seed, operator.index])), width)

    def walk(self, sketch: Sketch, score: Score, count: int, visited: set[Row]) -> tuple[Array, list[Row]]:
        """Best score of what was not visited after each configuration of the walk, in their order, and what is proposed."""
        met, scores = list[Row](), list[float]()

        def heard(choices: Choices) -> Array:
            found = score(choices)
            met.extend(map(tuple, choices.tolist()))
            scores.extend(found.tolist())
            return found

        proposed, _ = self.explorer.explore(sketch, heard, count, visited)
        aside = len(met) - self.explorer.figures["evaluations"]  # of those it may begin with, before the walk
        new = [-np.inf if row in visited else one for row, one in zip(met[aside:], scores[aside:], strict=True)]
        return np.maximum.accumulate(new), list(map(tuple, proposed.tolist()))

    def steps(self, scored: int) -> int:
        """Until so many were scored, its starting points being the first."""
        return math.ceil(scored / self.width)


def walks(operator: Operator, agent: Method, seed: int) -> list[Gain]:
    """Of each walk of the agent's against annealing's, in every tiling of the operator's loops. Speeds are synthetic (`Hill`):
    nobody measured all that; the cost model knows of them what was proposed."""
    baseline, sketch = METHODS[SA], widened(operator.sketches[0])
    hill = Hill.drawn(sketch, np.random.default_rng([seed, operator.index, *b"hill"]))
    rng, plan = np.random.default_rng([seed, operator.index, *b"walks"]), baseline.rhythm.plan
    walkers = [Walker.of(walking(method), operator, seed) for method in (baseline, agent)]
    known, found = dict.fromkeys(map(tuple, sketch.random(rng, plan).tolist())), list[Gain]()
    for _ in range(WALKS):
        features = sketch.features(np.asarray(list(known), dtype=np.int32))
        model = baseline.make_cost_model(operator, seed)
        model.fit(features, np.asarray([hill.speed(row) for row in features]))

        def score(choices: Choices, model: CostModel = model) -> Array:
            return model.predict(sketch.features(choices)).log_mean

        bests, plans = zip(*(one.walk(sketch, score, plan, set(known)) for one in walkers), strict=True)
        found.append(_gain(walkers, bests))
        known |= dict.fromkeys(row for proposed in plans for row in proposed[: plan // 2])
    return found


def _gain(walkers: Sequence[Walker], bests: Sequence[Array]) -> Gain:
    """Of two, the baseline first."""
    last = [float(best[-1]) for best in bests]
    own, same = (
        [one.steps(_scored(best, end)) for one, best, end in zip(walkers, bests, ends, strict=True)]
        for ends in (last, [min(last)] * 2)
    )
    return Gain(own[0] / own[1], same[0] / same[1], 2 ** (last[1] - last[0]))


def _scored(best: Array, end: float) -> int:
    """Configurations until it is CLOSE to `end`, which it comes to."""
    return 1 + int(np.argmax(best >= end - CLOSE))
