"""Synthetic measurements as a backend, and its clock."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pipeline.simulated_run import OPERATORS
from workers.engine.ports import Candidate
from workers.engine.space import Configuration
from workers.landscapes import SimulatedClock, SyntheticLandscape


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_the_clock_refuses_time_that_is_none(seconds: float) -> None:
    with pytest.raises(ValueError, match="finite time"):
        SimulatedClock().advance(seconds)


def test_equal_seeds_are_equal_landscapes_whatever_was_asked_before() -> None:
    one, two, other = (SyntheticLandscape(seed, OPERATORS, SimulatedClock(), {}) for seed in (3, 3, 4))
    rows = OPERATORS[2].sketches[0].random(np.random.default_rng(0), 20).tolist()
    candidates = [Candidate(2, Configuration(0, tuple(row)), "random") for row in rows]
    there = {o.configuration: o.seconds for o in one.measure(candidates, {}) if o.seconds}
    back = {o.configuration: o.seconds for o in two.measure(candidates[::-1], {}) if o.seconds}
    assert there == back
    assert there != {o.configuration: o.seconds for o in other.measure(candidates, {}) if o.seconds}
