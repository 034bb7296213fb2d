"""Adaptive sampling: how many clusters, what stands for one, and what it saves."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.methods import METHODS
from workers.engine.ports import Sampler
from workers.engine.sampler import Adaptive, Greedy
from workers.engine.space import Choices, Knob, Sketch

PAPER = METHODS["chameleon-paper"].parameters["sampler"]
WIDE = Sketch(tuple(Knob(f"k{i}", "category", tuple((v,) for v in range(64))) for i in range(5)))
CLUSTERS = 12


def clustered(seed: int, sizes: Collection[int]) -> tuple[Choices, NDArray[np.intp]]:
    """Distinct candidates around far-apart centres, and whose each is; within a cluster all are equally fast."""
    rng = np.random.default_rng(seed)
    centres = rng.permutation(CLUSTERS)[:, None] * 5 + rng.integers(2, 4, size=(CLUSTERS, 5))
    centres = rng.permuted(centres, axis=0)
    rows: dict[tuple[int, ...], int] = {}
    for cluster, size in enumerate(sizes):
        while sum(owner == cluster for owner in rows.values()) < size:
            rows[tuple((centres[cluster] + rng.integers(-1, 2, size=5)).tolist())] = cluster
    return np.asarray(list(rows), dtype=np.int32), np.asarray(list(rows.values()))


def spent(sampler: Sampler, seed: int) -> int:
    """Measurements until the best cluster, a small one that the estimates put in the middle, is met."""
    sizes = [30] * CLUSTERS
    sizes[5] = 6
    candidates, owners = clustered(seed, sizes)
    estimates = -owners.astype(np.float64) + 0.1 * np.random.default_rng(seed).random(len(owners))
    order = np.argsort(-estimates)
    candidates, owners, estimates = candidates[order], owners[order], estimates[order]
    known = {tuple(row): int(owner) for row, owner in zip(candidates.tolist(), owners, strict=True)}
    visited: set[tuple[int, ...]] = set()
    while True:
        left = np.asarray([tuple(row) not in visited for row in candidates.tolist()])
        plan = [tuple(row) for row in sampler.sample(WIDE, candidates[left], estimates[left], 64, visited).tolist()]
        visited |= set(plan)
        if any(known.get(row) == 5 for row in plan):
            return len(visited)


class Careless(Adaptive):
    """Clusters dealt at random."""

    def _clusters(self, table: NDArray[np.float64], count: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        labels, centres = super()._clusters(table, count)
        labels = np.random.default_rng(len(table)).permutation(labels)
        return labels, np.stack([table[labels == cluster].mean(axis=0) for cluster in range(len(centres))])


def savings(make: Callable[[int], Sampler]) -> float:
    """Greedy's measurements for each of the sampler's, over ten landscapes.

    Greedy measures the five clusters that are estimated better first, 192 in plans of 64; adaptive sampling needed 24
    or 32, random clusters 100 on average.
    """
    greedy = sum(spent(Greedy(), seed) for seed in range(10))
    return greedy / sum(spent(make(seed), seed) for seed in range(10))


@pytest.mark.parametrize("snap", ["best", "candidate"])
def test_needs_fewer_measurements_than_greedy_for_the_same_best(snap: str) -> None:
    assert savings(lambda seed: Adaptive(seed, snap=snap)) > 4


@pytest.mark.mutation
@pytest.mark.parametrize("snap", ["best", "candidate"])
def test_mutation_random_clusters_save_less(snap: str) -> None:
    assert savings(lambda seed: Careless(seed, snap=snap)) < 4


def test_literally_read_the_loop_stops_at_nine_clusters() -> None:
    candidates = CONVOLUTION.unvisited(np.random.default_rng(0), 256, set())
    sampler = Adaptive(**PAPER)
    assert len(sampler.sample(CONVOLUTION, candidates, np.zeros(256), 64, set())) <= 9
    assert sampler.figures["clusters"] == 9


def test_stepped_it_doubles_and_stops_where_the_loss_hardly_falls() -> None:
    candidates = CONVOLUTION.unvisited(np.random.default_rng(0), 256, set())
    sampler = Adaptive(mode="stepped")
    sampler.sample(CONVOLUTION, candidates, np.zeros(256), 64, set())
    assert sampler.figures["clusters"] == 16


def test_stepped_it_goes_on_while_clusters_are_still_told_apart() -> None:
    """Twenty-four far-apart points: from 16 to 24 clusters the loss falls to nothing."""
    rng = np.random.default_rng(1)
    rows = np.stack([rng.permutation(24) * 2 for _ in range(5)], axis=1)
    rows = np.concatenate([rows, np.minimum(rows + 1, 63)]).astype(np.int32)
    sampler = Adaptive(mode="stepped", columns="knobs", threshold=1.5, restarts=4)
    sampler.sample(WIDE, rows, np.zeros(len(rows)), 48, set())
    assert sampler.figures["clusters"] >= 24


@pytest.mark.parametrize("settings", [PAPER, {}], ids=["paper", "default"])
def test_never_more_clusters_than_the_plan_or_the_distinct_candidates(settings: dict[str, Any]) -> None:
    candidates = CONVOLUTION.unvisited(np.random.default_rng(0), 40, set())
    sampler = Adaptive(**settings)
    for count, few in ((5, 40), (12, 40), (64, 3), (64, 1)):
        plan = sampler.sample(CONVOLUTION, candidates[:few], np.zeros(few), count, set())
        assert 1 <= len(plan) <= sampler.figures["clusters"] <= min(count, few)


def test_a_visited_centroid_is_replaced_by_the_mode_of_the_candidates() -> None:
    """Three pairs whose rounded means are known; the first one is visited."""
    sketch = Sketch(WIDE.knobs[:3])
    rows = np.asarray([[0, 0, 9], [2, 0, 9], [30, 30, 9], [32, 30, 9], [60, 30, 9], [62, 30, 9]], dtype=np.int32)
    rows[4:, 0] = (60, 62)
    sampler = Adaptive(snap="space", columns="knobs")
    unhindered = sampler.sample(sketch, rows, np.zeros(6), 3, set())
    assert {tuple(row) for row in unhindered.tolist()} == {(1, 0, 9), (31, 30, 9), (61, 30, 9)}
    assert sampler.figures["synthesised"] == 0
    replaced = sampler.sample(sketch, rows, np.zeros(6), 3, {(1, 0, 9)})
    assert {tuple(row) for row in replaced.tolist()} == {(0, 30, 9), (31, 30, 9), (61, 30, 9)}
    assert sampler.figures["synthesised"] == 1
    again = sampler.sample(sketch, rows, np.zeros(6), 3, {(1, 0, 9), (0, 30, 9)})
    assert {tuple(row) for row in again.tolist()} & {(0, 0, 9), (2, 0, 9)}
    assert sampler.figures["synthesised"] == 0


def test_the_best_of_a_cluster_may_stand_for_it() -> None:
    candidates, owners = clustered(3, [20] * CLUSTERS)
    plan = Adaptive(snap="best").sample(WIDE, candidates, -np.arange(len(owners), dtype=np.float64), 64, set())
    firsts = {tuple(candidates[np.flatnonzero(owners == cluster)[0]].tolist()) for cluster in range(CLUSTERS)}
    assert len(firsts & set(map(tuple, plan.tolist()))) >= CLUSTERS - 2


def test_labels_say_which_candidates_are_of_one_cluster() -> None:
    """Twice as many clusters as there are far-apart centres: hardly one has candidates around two of them."""
    candidates, owners = clustered(3, [10] * CLUSTERS)
    labels = Adaptive(mode="stepped", columns="knobs", threshold=1.0).labels(WIDE, candidates, 24)
    assert len(labels) == len(candidates)
    pure = [len(np.unique(owners[labels == label])) == 1 for label in np.unique(labels)]
    assert len(pure) > CLUSTERS
    assert np.mean(pure) > 0.8


def test_unknown_ways_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="mode one of literal, stepped"):
        Adaptive(mode="elbow")
