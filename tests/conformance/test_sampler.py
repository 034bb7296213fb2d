"""What every sampler owes a proposer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.sampler import SAMPLERS

pytestmark = pytest.mark.parametrize("name", sorted(SAMPLERS))


@pytest.mark.parametrize(("candidates", "count"), [(64, 16), (16, 16), (5, 16), (1, 1)])
def test_a_plan_holds_at_most_count_distinct_choices_of_the_sketch(name: str, candidates: int, count: int) -> None:
    choices = CONVOLUTION.unvisited(np.random.default_rng(1), candidates, set())
    scores = -np.arange(candidates, dtype=np.float64)
    plan = SAMPLERS[name](7).sample(CONVOLUTION, choices, scores, count, set())
    assert len(plan) <= min(count, candidates)
    assert plan.shape[1] == len(CONVOLUTION.knobs)
    assert (plan >= 0).all()
    assert (plan < CONVOLUTION.sizes).all()
    assert len({tuple(row) for row in plan.tolist()}) == len(plan)


def test_nothing_visited_is_in_a_plan(name: str) -> None:
    """Whatever the sampler makes up: what it proposed before is visited now."""
    choices = CONVOLUTION.unvisited(np.random.default_rng(1), 64, set())
    sampler, visited = SAMPLERS[name](7), set[tuple[int, ...]]()
    for _ in range(3):
        left = choices[[tuple(row) not in visited for row in choices.tolist()]]
        plan = sampler.sample(CONVOLUTION, left, -np.arange(len(left), dtype=np.float64), 16, visited)
        rows = set(map(tuple, plan.tolist()))
        assert rows
        assert not rows & visited
        visited |= rows


def test_figures_are_counts(name: str) -> None:
    sampler = SAMPLERS[name](7)
    sampler.sample(CONVOLUTION, CONVOLUTION.unvisited(np.random.default_rng(1), 64, set()), np.zeros(64), 16, set())
    assert all(isinstance(count, int) and count >= 0 for count in sampler.figures.values())


def test_depends_on_its_seed_and_arguments_only(name: str) -> None:
    choices = CONVOLUTION.unvisited(np.random.default_rng(1), 64, set())
    scores = -np.arange(64, dtype=np.float64)
    sampler = SAMPLERS[name](7)
    plans = [one.sample(CONVOLUTION, choices, scores, 16, set()) for one in (sampler, sampler, SAMPLERS[name](7))]
    assert all((plan == plans[0]).all() for plan in plans)
