"""How the measurements are counted that a sampler saves in spaces of millions."""

from __future__ import annotations

import pytest

from tests.engine.synthetic_search import convolution
from workers.benchmarks.methods import probes, samplings
from workers.benchmarks.methods.arms import arm_named
from workers.benchmarks.methods.samplings import saved, searched
from workers.engine.methods import Method

SHORT = "autotvm+explorer.chains=16+explorer.steps=20+rhythm.plan=16+search.first=16"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplings, "TRIALS", 64)


@pytest.fixture(scope="module")
def short() -> Method:
    return arm_named(SHORT)


def test_a_search_is_of_so_many_measurements_and_ends_when_it_has_enough(short: Method) -> None:
    series = searched(convolution(), short, 0)
    assert 1 < len(series)
    assert series[-1][0] <= 64
    enough = series[0][1] * 0.99
    ended = searched(convolution(), short, 0, enough)
    assert ended[-1][1] <= enough
    assert ended == series[: len(ended)]


def test_a_method_saves_nothing_beside_itself(short: Method) -> None:
    assert saved(convolution(), short, short, 0) == 1.0


def test_who_never_comes_there_saves_nothing(short: Method) -> None:
    """Random search is not where annealing is after as many measurements."""
    assert saved(convolution(), short, arm_named("random"), 0) == 0.0


def test_every_way_of_sampling_that_is_compared_is_known() -> None:
    for pair in probes.SAMPLED.values():
        base, sampled = map(arm_named, pair)
        assert (base.sampler, sampled.sampler) == ("greedy", "adaptive")
        assert base.explorer == sampled.explorer
