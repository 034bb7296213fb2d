"""The guided search of one sketch: explorer, cost model and sampler."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workers.engine.acquisition import ACQUISITIONS
from workers.engine.fitted_model import FittedModel
from workers.engine.history import SketchHistory
from workers.engine.ports import Explorer, Sampler
from workers.engine.search import FIGURES, GROUPING, HANDED, Search
from workers.engine.space import Choices, Sketch

_ASKED = 20

Rows = list[tuple[int, ...]]


class Draws(Protocol):
    """Where random configurations come from: a `Sketch`, of which each is as likely as any other, or `InformedDraws`."""

    def unvisited(self, rng: np.random.Generator, count: int, visited: Collection[tuple[int, ...]]) -> Choices:
        """Up to `count` distinct choices outside `visited`, as (n, knobs); fewer only when (nearly) none is left."""


class SketchSearch:
    """Picks new configurations of one sketch. `counters` are those of its proposer (`COUNTERS`)."""

    def __init__(
        self,
        sketch: Sketch,
        seen: SketchHistory,
        explorer: Explorer,
        sampler: Sampler,
        model: FittedModel,
        draws: Draws,
        search: Search,
        rng: np.random.Generator,
        counters: dict[str, float],
    ) -> None:
        self._sketch, self._seen = sketch, seen
        self.explorer, self.model = explorer, model
        self._sampler, self._draws = sampler, draws
        self._search, self._rng, self._counters = search, rng, counters

    def pick(self, count: int) -> tuple[Rows, Rows, int]:
        """Guided configurations, random ones, and how many of `count` the sampler left out.

        At random is only what is meant to be, by the proposer or the sampler, and what the explorer could not supply; a sampler
        that takes fewer says that they stand for the others, which are not replaced.
        """
        picked: Rows = []
        left_out = drawn = 0
        if len(self._seen.speeds) >= self._search.first:
            chance = self._random_share(count) * count
            rounding = self._rng.random()
            at_random = int(chance + rounding)
            self._counters["steered"] += count
            self._counters["chance"] += chance
            picked, left_out = self._guided(count - at_random)
            drawn = self._drawn if picked else 0
            self._counters["chance"] += drawn
            if left_out:  # of a plan that the sampler thinned, the same share is random
                left_out += at_random - int(chance * len(picked) / (len(picked) + left_out) + rounding)
        taken = self._seen.visited | set(picked)
        rest = self._draws.unvisited(self._rng, count - len(picked) - left_out, taken)
        guided = len(picked) - drawn
        return picked[:guided], picked[guided:] + [tuple(row) for row in rest.tolist()], left_out

    def _guided(self, count: int) -> tuple[Rows, int]:
        """Distinct unvisited choices by explorer and sampler, of which the last `_drawn` are by chance, and how many the
        sampler left out."""
        if count < 1:
            return [], 0
        opinion, best = self.model.frozen()
        acquire = ACQUISITIONS[self._search.acquisition]

        def score(choices: Choices) -> NDArray[np.float64]:
            return acquire(opinion(choices), best)

        wanted, visited = math.ceil(self._search.pool * count), self._seen.visited
        candidates, steps = self.explorer.explore(self._sketch, score, wanted, visited)
        self._counters["walks"] += 1
        self._counters["steps"] += steps
        self._add(FIGURES, self.explorer.figures)
        if not len(candidates):
            return [], 0
        plan = self._sampler.sample(self._sketch, candidates, score(candidates), count, visited)
        self._add(GROUPING, self._sampler.figures)
        self._add(HANDED, {"samplings": 1, "handed": len(candidates)})
        # A sampler may synthesise configurations: they too must be distinct and new.
        fresh = list(dict.fromkeys(row for row in map(tuple, plan.tolist()) if row not in visited))
        greedy = set(map(tuple, candidates[:count].tolist()))
        left_out = min(count, len(candidates)) - len(fresh) if fresh else 0
        chosen = fresh[: len(fresh) - self._drawn]
        self._credit(chosen, candidates)
        self._counters["not_greedy"] += sum(row not in greedy for row in chosen)
        self._counters["left_out"] += left_out
        return fresh, left_out

    @property
    def _drawn(self) -> int:
        """Of the plan that the sampler made last."""
        return self._sampler.figures.get("drawn", 0)

    def _credit(self, fresh: Rows, candidates: Choices) -> None:
        """Counts what the explorer's walk did for a plan. What it handed over and did not begin with is its doing,
        whichever of them the sampler took; what a sampler synthesised is not, nor is a sketch scored whole."""
        begun = self.explorer.begun
        if begun is None:
            self._counters["enumerated"] += len(fresh)
            return
        reached = set(map(tuple, candidates.tolist())) - set(map(tuple, begun.tolist()))
        self._counters["reached"] += sum(row in reached for row in fresh)

    def _add(self, names: tuple[str, ...], figures: dict[str, int]) -> None:
        for name in names:
            self._counters[name] += figures.get(name, 0)

    def _random_share(self, count: int) -> float:
        """Of a plan of `count`: `epsilon`, or the mean spread of the speeds of random configurations over the best (AdaTune's
        program: of 20), at most 1."""
        if not self._search.contextual:
            return self._search.epsilon
        opinion = self.model.predict(self._sketch.random(self._rng, _ASKED))
        if not opinion.spread.any():
            return self._search.epsilon
        self._counters["doubted"] += count
        return min(1.0, float(np.mean(opinion.speed_spread)))
