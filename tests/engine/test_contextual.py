"""AdaTune's contextual optimizer: as much chance as the model is in doubt."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.engine.synthetic_search import convolution, measured, run
from workers.engine.cost_model import RandomForest, XGBoost
from workers.engine.errors import UnknownPart
from workers.engine.explorer import SimulatedAnnealing
from workers.engine.ports import CostModel
from workers.engine.proposer import GuidedProposer
from workers.engine.sampler import Greedy
from workers.engine.search import Search

CONTEXTUAL: dict[str, Any] = {"contextual": True, "acquisition": "expected_improvement"}


def made(seed: int = 0, cost_model: Any = RandomForest, **search: Any) -> GuidedProposer:
    def learned() -> CostModel:
        return cost_model(seed)  # type: ignore[no-any-return]

    def explorer(rng: np.random.Generator) -> SimulatedAnnealing:
        return SimulatedAnnealing(rng, chains=32, steps=20)

    return GuidedProposer(
        convolution(), explorer, Greedy(), learned, np.random.default_rng(seed), Search(**{**CONTEXTUAL, **search})
    )


def shares(proposer: GuidedProposer, plans: int) -> list[float]:
    """Mean share of chance in each plan of 16."""
    found, before = [], (0.0, 0.0)
    for _ in range(plans):
        proposer.observe([measured(candidate) for candidate in proposer.propose(16)])
        now = (proposer.counters["chance"], proposer.counters["steered"])
        found.append((now[0] - before[0]) / max(now[1] - before[1], 1))
        before = now
    return found


def test_the_share_of_chance_shrinks_as_the_model_becomes_sure() -> None:
    """Means of four seeds: 0.2 in plans 2 to 4, 0.08 in the last three of twelve."""
    table = np.asarray([shares(made(seed), 12) for seed in range(4)])
    early, late = table[:, 1:4].mean(), table[:, -3:].mean()
    assert 0.05 < early < 0.5
    assert late < 0.6 * early


@pytest.mark.parametrize(("cost_model", "contextual"), [(RandomForest, True), (RandomForest, False), (XGBoost, True)])
def test_plans_whose_share_followed_the_doubt_are_counted(cost_model: Any, contextual: bool) -> None:
    proposer = made(cost_model=cost_model, contextual=contextual, acquisition="mean")
    run(proposer, 48)
    counters, doubted = proposer.counters, cost_model is RandomForest and contextual
    assert counters["steered"] > 0
    assert counters["doubted"] == (counters["steered"] if doubted else 0)
    assert counters["handed"] >= counters["explorer"]
    assert counters["samplings"] == counters["walks"]


@pytest.mark.mutation
def test_mutation_a_model_that_never_learns_keeps_its_share() -> None:
    class Forgetful(RandomForest):
        def fit(self, features: Any, speeds: Any) -> None:
            super().fit(features[:16], speeds[:16])

    table = np.asarray([shares(made(seed, Forgetful), 12) for seed in range(4)])
    assert table[:, -3:].mean() > 0.6 * table[:, 1:4].mean()


def test_the_random_candidates_are_as_many_as_the_share_says() -> None:
    """400 steered candidates at shares of 5 to 20 %: three standard deviations of rounding are 8."""
    proposer = made()
    run(proposer, 416)
    counters = proposer.counters
    first = proposer.counters["proposed"] - counters["steered"] - counters["start"]
    assert abs(counters["random"] - first - counters["chance"]) < 8


def test_a_model_without_spread_leaves_it_at_epsilon() -> None:
    proposer = made(cost_model=XGBoost, epsilon=0.125)
    assert shares(proposer, 4)[1:] == [0.125] * 3


def test_without_contextual_the_share_is_epsilon() -> None:
    assert shares(made(contextual=False, epsilon=0.25), 3)[1:] == [0.25] * 2


@pytest.mark.parametrize("acquisition", ["mean", "expected_improvement", "upper_bound"])
def test_run_2n_equals_run_n_state_restore_replay_run_n(acquisition: str) -> None:
    whole, first = made(11, acquisition=acquisition), made(11, acquisition=acquisition)
    outcomes, journal = run(whole, 96, plan=8), run(first, 48, plan=8)
    resumed = made(11, acquisition=acquisition)
    resumed.restore(json.loads(json.dumps(first.state())))
    resumed.observe(journal)
    assert [o.candidate for o in journal + run(resumed, 48, plan=8)] == [o.candidate for o in outcomes]
    assert json.dumps(resumed.state()) == json.dumps(whole.state())


def test_unknown_acquisitions_list_the_legal_ones() -> None:
    with pytest.raises(UnknownPart, match="no acquisition 'luck'; choose one of expected_improvement, mean, upper_b"):
        Search(acquisition="luck")
