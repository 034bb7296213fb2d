"""Adaptive sampling as programmed: whole centres of two knobs, what they are made up with, and what is left to chance."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.sampler import AdaptiveProgram, adaptive_program
from workers.engine.sampler.adaptive_program import truncated_means
from workers.engine.space import Choices, Knob, Sketch

SIZES = (64, 48, 4, 3)
"""Options of the knobs: the first two are the widest."""
SKETCH = Sketch(tuple(Knob(f"k{i}", "category", tuple((v,) for v in range(size))) for i, size in enumerate(SIZES)))


def around(centres: list[tuple[int, int]], each: int) -> Choices:
    """Candidates within 1 of each centre in the widest knobs, whose others are 1 and 2 alone."""
    rng = np.random.default_rng(0)
    widest = np.repeat(np.asarray(centres), each, axis=0) + rng.integers(-1, 2, size=(len(centres) * each, 2))
    return np.concatenate([widest, np.tile([1, 2], (len(widest), 1))], axis=1).astype(np.int32)


def sampled(sampler: AdaptiveProgram, candidates: Choices, count: int = 64) -> Choices:
    return sampler.sample(SKETCH, candidates, np.zeros(len(candidates)), count, set())


def test_the_last_three_of_as_many_as_there_are_clusters_are_by_chance() -> None:
    """Eight clusters a long way apart are told apart by more than eight: 64 candidates, in steps of 8."""
    candidates = around([(8 * i + 2, 6 * i + 2) for i in range(8)], 8)
    sampler = AdaptiveProgram(1)
    plan = sampled(sampler, candidates)
    k = sampler.figures["clusters"]
    assert k % 8 == 0
    assert len(plan) == k
    assert sampler.figures["synthesised"] == k - 3
    made, chance = plan[: k - 3], plan[k - 3 :]
    assert (made[:, 2:] == [1, 2]).all()  # as all candidates have them
    assert not (chance[:, 2:] == [1, 2]).all()
    near = np.abs(made[:, None, :2] - candidates[None, :, :2]).max(axis=2).min(axis=1)
    assert (near <= 1).mean() > 0.7  # an empty cluster's is anywhere


@pytest.mark.mutation
def test_mutation_without_chance_all_are_made_up() -> None:
    sampler = AdaptiveProgram(1, chance=0)
    plan = sampled(sampler, around([(8 * i + 2, 6 * i + 2) for i in range(8)], 8))
    assert sampler.figures["synthesised"] == len(plan)


def test_a_centre_is_the_mean_cut_to_a_whole_index() -> None:
    points = np.asarray([[0, 0], [1, 1], [1, 1], [40, 9], [41, 9], [41, 9]], dtype=np.int32)
    found = truncated_means(points, 2, np.random.default_rng(3))
    assert sorted(map(tuple, found.centres.tolist())) == [(0, 0), (40, 9)]
    assert found.loss == 2 * 2 + 2
    assert len(set(found.labels[:3])) == len(set(found.labels[3:])) == 1


@pytest.mark.mutation
def test_mutation_rounded_centres_lie_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.asarray([[0, 0], [1, 1], [1, 1], [40, 9], [41, 9], [41, 9]], dtype=np.int32)
    monkeypatch.setattr(adaptive_program, "cut", lambda sums, sizes: np.round(sums / np.maximum(sizes, 1)[:, None]))
    found = truncated_means(points, 2, np.random.default_rng(3))
    assert sorted(map(tuple, found.centres.tolist())) == [(1, 1), (41, 9)]


def test_more_clusters_may_be_made_than_there_are_distinct_pairs() -> None:
    """As in the program: an empty cluster's configuration is by chance but for its centre."""
    sampler = AdaptiveProgram(0)
    plan = sampled(sampler, np.concatenate([around([(10, 10)], 1)] * 16))
    assert sampler.figures["clusters"] >= 8
    assert len(set(map(tuple, plan.tolist()))) == len(plan) == sampler.figures["clusters"]


def test_what_is_visited_gives_way_to_chance() -> None:
    candidates = around([(8 * i + 2, 6 * i + 2) for i in range(8)], 8)
    everything = {(a, b, 1, 2) for a in range(64) for b in range(48)}
    sampler = AdaptiveProgram(1)
    plan = sampler.sample(SKETCH, candidates, np.zeros(len(candidates)), 64, everything)
    assert sampler.figures["synthesised"] == 0
    assert len(plan) == sampler.figures["clusters"]
    assert not everything & set(map(tuple, plan.tolist()))


def test_a_plan_of_a_convolution_is_one_of_a_few_sizes() -> None:
    candidates = CONVOLUTION.unvisited(np.random.default_rng(0), 64, set())
    for seed in range(5):
        plan = AdaptiveProgram(seed).sample(CONVOLUTION, candidates, np.zeros(64), 64, set())
        assert len(plan) in range(8, 65, 8)


@pytest.mark.parametrize("numbers", [{"threshold": 0.5}, {"chance": -1}], ids=str)
def test_numbers_that_mean_nothing_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="starts at"):
        AdaptiveProgram(0, **numbers)  # type: ignore[arg-type]
