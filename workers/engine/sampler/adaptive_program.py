"""Chameleon's Adaptive Sampling as its authors programmed it."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.engine.sampler.adaptive import FEWEST
from workers.engine.space import Choices, Sketch

STEP = 8
WIDEST = 2
"""Knobs that are clustered: those with most options."""
ROUNDS = 100
"""Of K-means, at most."""
TRIES = 64
"""Draws for a configuration that is not in the plan yet; the program tries for ever."""


class Clusters(NamedTuple):
    """Of which of k each point is, (n,), their centres (k, columns), and the sum of squared distances."""

    labels: NDArray[np.intp]
    centres: Choices
    loss: float


class AdaptiveProgram:
    """Makes a configuration of each cluster of the candidates, of as few as tell them apart (`Adaptive` is the paper's).

    The indices of the two knobs with most options are clustered, with k = 8, 16, 24, ... up to `count` until `threshold` x
    L2 loss >= the previous loss. Centres begin at points drawn with replacement, are cut to whole indices in every round, and
    jump to another point where their cluster is empty. A configuration has these two knobs of a centre, and each other knob of
    a candidate drawn for it alone, of any cluster; of an empty cluster's by chance. In place of what is visited and of the last
    `chance` of a sketch's part of a plan, which the k clusters are the size of, come configurations by chance (program: 5 % of
    64, rounded down).

    `figures`: "clusters" is the chosen k, "synthesised" how many of the plan were made so, "drawn" how many, its last, came by
    chance.
    """

    def __init__(self, seed: int = 0, threshold: float = 2.5, chance: int = 3) -> None:
        if threshold < 1 or chance < 0:
            raise ValueError(f"threshold {threshold} starts at 1, chance {chance} at 0")
        self._seed = seed
        self._threshold = threshold
        self._chance = chance
        self.figures: dict[str, int] = {}

    def sample(
        self,
        sketch: Sketch,
        candidates: Choices,
        scores: NDArray[np.float64],
        count: int,
        visited: Collection[tuple[int, ...]],
    ) -> Choices:
        count = min(count, len(candidates))
        rng = np.random.default_rng([self._seed, len(visited)])  # another plan of the same candidates has other luck
        widest = np.sort(np.argsort(-sketch.sizes, kind="stable")[:WIDEST])
        found = self._clusters(candidates[:, widest], count, rng)
        made, k = _synthesised(sketch, candidates, found, widest, rng), len(found.centres)
        fresh = [row for row in made[: max(0, k - self._chance)] if row not in visited]
        rest = sketch.unvisited(rng, k - len(fresh), {*visited, *fresh})
        self.figures = {"clusters": k, "synthesised": len(fresh), "drawn": len(rest)}
        return np.concatenate([np.asarray(fresh, dtype=np.int32).reshape(len(fresh), len(sketch.knobs)), rest])

    def _clusters(self, points: Choices, count: int, rng: np.random.Generator) -> Clusters:
        k, previous = min(FEWEST, count), math.inf
        while True:
            found = truncated_means(points, k, rng)
            if self._threshold * found.loss >= previous or k + STEP > count:
                return found
            previous = found.loss
            k += STEP


def truncated_means(points: Choices, k: int, rng: np.random.Generator) -> Clusters:
    """K-means of `points` (n, columns), whose centres are whole numbers: means are cut in every round."""
    centres = points[rng.integers(len(points), size=k)]
    labels: NDArray[np.intp] = np.full(len(points), -1)
    for _ in range(ROUNDS):
        before, labels = labels, np.square(points[:, None] - centres).sum(axis=2).argmin(axis=1)
        sizes = np.bincount(labels, minlength=k)
        if sizes.all() and (labels == before).all():
            break
        sums = np.stack([np.bincount(labels, column, k) for column in points.T], axis=1)
        centres = np.where(
            sizes[:, None] > 0, cut(sums, sizes).astype(points.dtype), points[rng.integers(len(points), size=k)]
        )
    return Clusters(labels, centres, float(np.square(points - centres[labels]).sum()))


def cut(sums: NDArray[Any], sizes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Means of clusters, cut to whole numbers; 0 of empty ones."""
    means: NDArray[np.float64] = sums // np.maximum(sizes, 1)[:, None]
    return means


def _synthesised(
    sketch: Sketch, candidates: Choices, found: Clusters, widest: NDArray[np.intp], rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """A configuration of each centre, distinct where that can be had."""
    knobs, sizes = np.arange(len(sketch.knobs)), np.bincount(found.labels, minlength=len(found.centres))
    plan: dict[tuple[int, ...], None] = {}
    for centre, size in zip(found.centres, sizes, strict=True):
        for _ in range(TRIES):
            drawn = candidates[rng.integers(len(candidates), size=len(knobs)), knobs]
            row = drawn if size else rng.integers(0, sketch.sizes, dtype=np.int32)
            row[widest] = centre
            if (made := tuple(row.tolist())) not in plan:
                plan[made] = None
                break
    return list(plan)
