"""Scores from opinions."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from workers.engine.acquisition import ACQUISITIONS, expected_improvement, mean, upper_bound
from workers.engine.cost_model import RandomForest
from workers.engine.ports import Prediction
from workers.engine.space import Features


def opinion(mean: list[float], spread: list[float], scale: Literal["log", "speed"] = "log") -> Prediction:
    return Prediction(np.asarray(mean), np.asarray(spread), scale)


@pytest.mark.parametrize(
    ("means", "scale", "best"), [([-2.0, -0.5, 0.0, 1.0], "log", 0.0), ([0.5, 1.0, 1.4, 2.0], "speed", 0.5)]
)
def test_expected_improvement_is_the_mean_of_what_lies_above_the_best(
    means: list[float], scale: Literal["log", "speed"], best: float
) -> None:
    """Against 400,000 draws a candidate; the rarest, of which 1 in 40 improves, are worth 2 %. The best is a log2."""
    spreads = [1.0, 0.5, 0.1, 0.5]
    draws = np.random.default_rng(1).normal(means, spreads, (400_000, 4))
    above = draws - (best if scale == "log" else np.sqrt(2.0))
    expected = np.log2(np.maximum(above, 0).mean(axis=0))
    assert expected_improvement(opinion(means, spreads, scale), best) == pytest.approx(expected, abs=0.09)


def forest() -> tuple[RandomForest, Features]:
    """AdaTune's program's, and its two questions: what runs at 0.9 +- 0.1 of the best, and what almost certainly fails: of 30
    tries one ran, at the best speed."""
    features = np.repeat([[0.0], [1.0]], [24, 30], axis=0).astype(np.float32)
    speeds = np.asarray([1.0, 0.8] * 12 + [0.0] * 29 + [1.0])
    model = RandomForest(0, trees=200, target="speed", calibration="raw")
    model.fit(features, speeds)
    return model, np.asarray([[0.0], [1.0]], dtype=np.float32)


def test_what_almost_certainly_fails_promises_less_than_what_is_nearly_the_best() -> None:
    near, failing = expected_improvement(opinion([0.9, 0.033], [0.1, 0.1], "speed"), 0.0)
    assert 2**near == pytest.approx(0.00833, rel=1e-3)  # 0.1 x (phi(1) - Phi(-1))
    assert 2**failing < 1e-20
    model, asked = forest()
    assert model.predict(asked).mean == pytest.approx([0.9, 1 / 30], abs=0.01)
    near, failing = expected_improvement(model.predict(asked), 0.0)
    assert near > failing + 10


@pytest.mark.mutation
def test_mutation_a_normal_log_speed_of_the_same_moments_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    predict = RandomForest.predict

    def logs(self: RandomForest, features: Features) -> Prediction:
        found = predict(self, features)
        return Prediction(np.log2(found.mean), found.spread / (found.mean * np.log(2)))

    monkeypatch.setattr(RandomForest, "predict", logs)
    with pytest.raises(AssertionError):
        test_what_almost_certainly_fails_promises_less_than_what_is_nearly_the_best()


def test_scores_are_log2_whatever_the_opinion_speaks_of() -> None:
    speeds = opinion([0.5, 1.0], [0.5, 1.0], "speed")
    assert mean(speeds, 0.0) == pytest.approx([-1.0, 0.0])
    assert upper_bound(speeds, 0.0) == pytest.approx([0.0, 1.0])
    assert speeds.speed_spread == pytest.approx([0.5, 1.0])
    assert opinion([-1.0, 0.0], [1.0, 1.0]).speed_spread == pytest.approx(np.log(2) * np.asarray([0.5, 1.0]))
    with pytest.raises(ValueError, match="a predicted speed must be positive"):
        opinion([0.5, 0.0], [0.1, 0.1], "speed")


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


@pytest.mark.parametrize("name", ["mean", "upper_bound"])
def test_a_model_without_spread_is_followed_by_its_mean(name: str) -> None:
    sure = opinion([-1.0, -0.5, 0.0], [0.0] * 3)
    assert ACQUISITIONS[name](sure, 0.0) == pytest.approx(sure.mean)


def test_what_all_trees_agree_on_promises_as_much_alone_as_beside_others() -> None:
    """A batch that fails for sure beside one that may bring something: an annealing compares batches."""
    means, spreads = [2.0**-6, 2.0**-5, 0.3], [0.0, 0.0, 0.3]
    score = ACQUISITIONS["expected_improvement"]
    together = score(Prediction(np.asarray(means), np.asarray(spreads), "speed"), 0.0)
    alone = [
        score(Prediction(np.asarray([m]), np.asarray([s]), "speed"), 0.0)[0]
        for m, s in zip(means, spreads, strict=True)
    ]
    assert alone == pytest.approx(together)
    assert together[0] < together[1] < together[2]


@pytest.mark.parametrize("name", sorted(ACQUISITIONS))
def test_nothing_asked_nothing_answered(name: str) -> None:
    assert len(ACQUISITIONS[name](opinion([], []), 0.0)) == 0
