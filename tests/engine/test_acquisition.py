"""Scores from opinions."""

from __future__ import annotations

import numpy as np
import pytest

from workers.engine.acquisition import ACQUISITIONS, expected_improvement, upper_bound
from workers.engine.ports import Prediction


def opinion(mean: list[float], spread: list[float]) -> Prediction:
    return Prediction(np.asarray(mean), np.asarray(spread))


def test_expected_improvement_is_the_mean_of_what_lies_above_the_best() -> None:
    """Against 400,000 draws a candidate; the rarest, of which 1 in 40 improves, are worth 2 %."""
    means, spreads, best = [-2.0, -0.5, 0.0, 1.0], [1.0, 0.5, 0.1, 0.5], 0.0
    draws = np.random.default_rng(1).normal(means, spreads, (400_000, 4))
    expected = np.log2(np.maximum(draws - best, 0).mean(axis=0))
    assert expected_improvement(opinion(means, spreads), best) == pytest.approx(expected, abs=0.09)


def test_expected_improvement_rises_without_a_plateau_or_a_step_however_far_below_the_best() -> None:
    means = np.linspace(-40, 5, 4001)
    scores = expected_improvement(opinion(means.tolist(), [0.5] * 4001), 0.0)
    assert np.isfinite(scores).all()
    assert (np.diff(scores) > 0).all()
    assert (np.diff(scores, 2) < 0.02).all()


def test_doubt_can_win_over_a_better_mean() -> None:
    doubtful = opinion([-1.0, -1.5], [0.01, 2.0])
    assert np.argmax(expected_improvement(doubtful, 0.0)) == 1
    assert np.argmax(upper_bound(doubtful, 0.0)) == 1
    assert np.argmax(ACQUISITIONS["mean"](doubtful, 0.0)) == 0


@pytest.mark.parametrize("name", sorted(ACQUISITIONS))
def test_a_model_without_spread_is_followed_by_its_mean(name: str) -> None:
    sure = opinion([-1.0, -0.5, 0.0], [0.0] * 3)
    assert ACQUISITIONS[name](sure, 0.0) == pytest.approx(sure.mean)


@pytest.mark.parametrize("name", sorted(ACQUISITIONS))
def test_nothing_asked_nothing_answered(name: str) -> None:
    assert len(ACQUISITIONS[name](opinion([], []), 0.0)) == 0
