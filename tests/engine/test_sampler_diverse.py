"""The diversity filter."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.sampler import Diverse, Greedy

RNG = np.random.default_rng(0)
CANDIDATES = CONVOLUTION.unvisited(RNG, 40, set())
SCORES = -np.sort(RNG.random(40))


def test_without_weight_it_is_greedy() -> None:
    picks = [s.sample(CONVOLUTION, CANDIDATES, SCORES, 9, set()) for s in (Diverse(weight=0.0), Greedy())]
    assert (picks[0] == picks[1]).all()


def test_the_first_is_the_best_and_the_rest_use_more_options_than_greedy() -> None:
    plan, greedy = Diverse().sample(CONVOLUTION, CANDIDATES, SCORES, 9, set()), CANDIDATES[:9]
    assert (plan[0] == CANDIDATES[0]).all()
    used = [sum(len(set(column)) for column in rows.T.tolist()) for rows in (plan, greedy)]
    assert used[0] > used[1]


def test_a_copy_in_all_but_one_knob_gives_way_to_something_new() -> None:
    near = CANDIDATES[:1].copy()
    near[0, 0] = (near[0, 0] + 1) % CONVOLUTION.sizes[0]
    far = (CANDIDATES[:1] + 1) % CONVOLUTION.sizes
    rows = np.concatenate([CANDIDATES[:1], near, far]).astype(np.int32)
    plan = Diverse().sample(CONVOLUTION, rows, np.asarray([0.0, -0.1, -0.5]), 2, set())
    assert (plan[1] == far[0]).all()


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 0, not -1"):
        Diverse(weight=-1.0)
