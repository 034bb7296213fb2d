"""The greedy sampler."""

from __future__ import annotations

import numpy as np

from tests.engine.synthetic_search import CONVOLUTION
from workers.engine.sampler import Greedy


def test_takes_the_first_candidates_in_order() -> None:
    candidates = CONVOLUTION.unvisited(np.random.default_rng(0), 20, set())
    assert (Greedy().sample(CONVOLUTION, candidates, np.zeros(20), 7, set()) == candidates[:7]).all()
