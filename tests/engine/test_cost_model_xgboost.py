"""Boosted trees: do they order configurations, and in which unit do they speak?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.engine.synthetic_search import CONVOLUTION, speed
from workers.engine.cost_model import XGBoost
from workers.engine.space import Configuration

CHOICES = CONVOLUTION.unvisited(np.random.default_rng(8), 700, set())
FEATURES = CONVOLUTION.features(CHOICES)
SPEEDS = np.asarray([speed(Configuration(0, tuple(row))) for row in CHOICES.tolist()])
VARIANTS: list[dict[str, Any]] = [{}, {"target": "speed"}, {"objective": "rank"}, {"rounds": 100, "subsample": 1.0}]


def correlation(model: XGBoost) -> float:
    """Spearman's, on 300 points that the model has not seen."""
    return float(spearmanr(model.predict(FEATURES[400:]).mean, SPEEDS[400:]).statistic)


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_orders_unseen_configurations(parameters: dict[str, Any]) -> None:
    model = XGBoost(1, **parameters)
    model.fit(FEATURES[:400], SPEEDS[:400])
    assert correlation(model) > 0.7


@pytest.mark.mutation
def test_mutation_shuffled_speeds_fail_the_order_gate() -> None:
    model = XGBoost(1)
    model.fit(FEATURES[:400], np.random.default_rng(0).permutation(SPEEDS[:400]))
    assert correlation(model) < 0.3


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
def test_speaks_in_log2_speed_relative_to_the_best(parameters: dict[str, Any]) -> None:
    """Rank scores are only brought to the scale by a line, hence the width of an octave and a half."""
    model = XGBoost(1, **parameters)
    model.fit(FEATURES, SPEEDS)
    logs = np.log2(np.maximum(SPEEDS / SPEEDS.max(), 2.0**-6))
    assert np.abs(model.predict(FEATURES).mean - logs).mean() < 1.5


def test_failures_lie_at_the_floor() -> None:
    model = XGBoost(1, floor=-6.0, rounds=200, subsample=1.0)
    features = np.asarray([[0.0], [1.0]] * 20, dtype=np.float32)
    model.fit(features, np.asarray([4e9, 0.0] * 20))
    assert model.predict(features[:2]).mean == pytest.approx([0.0, -6.0], abs=0.1)


@pytest.mark.parametrize(
    "parameters", [{"objective": "gain"}, {"target": "time"}, {"rounds": 0}, {"floor": 0.0}, {"floor": -61.0}]
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="objective one of reg, rank"):
        XGBoost(1, **parameters)


def test_points_that_are_compared_with_each_other_have_no_weights() -> None:
    """XGBoost would take a weight for a group's and break off in the middle of a run."""
    with pytest.raises(ValueError, match="weighted is of single points, which the objective rank compares"):
        XGBoost(1, objective="rank", weighted=True)
