"""What every cost model owes a proposer. Warnings are errors here, as everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION, speed
from workers.engine.cost_model import COST_MODELS
from workers.engine.space import Configuration, Features

pytestmark = pytest.mark.parametrize("name", sorted(COST_MODELS))
CHOICES = CONVOLUTION.unvisited(np.random.default_rng(2), 120, set())
FEATURES = CONVOLUTION.features(CHOICES)
SPEEDS = np.asarray([speed(Configuration(0, tuple(row))) for row in CHOICES.tolist()])


def test_before_the_first_fit_it_predicts_zeros(name: str) -> None:
    opinion = COST_MODELS[name](1).predict(FEATURES)
    assert (opinion.mean == 0).all()
    assert opinion.mean.shape == (120,)


@pytest.mark.parametrize("count", [1, 2, 8, 120])
@pytest.mark.parametrize("kind", ["measured", "failed", "constant"])
def test_any_data_gives_finite_opinions_on_any_number_of_candidates(name: str, count: int, kind: str) -> None:
    speeds = {"measured": SPEEDS, "failed": 0 * SPEEDS, "constant": 0 * SPEEDS + 3e9}[kind][:count]
    model = COST_MODELS[name](1)
    model.fit(FEATURES[:count], speeds)
    for rows in (0, 1, 120):
        opinion = model.predict(FEATURES[:rows])
        assert opinion.mean.shape == opinion.spread.shape == (rows,)


def test_no_features_are_no_error(name: str) -> None:
    none: Features = np.zeros((4, 0), dtype=np.float32)
    model = COST_MODELS[name](1)
    model.fit(none, SPEEDS[:4])
    assert np.ptp(model.predict(none).mean) == 0


def test_a_fit_depends_on_seed_and_data_only(name: str) -> None:
    fresh, used = COST_MODELS[name](1), COST_MODELS[name](1)
    used.fit(FEATURES[:40], SPEEDS[:40])
    for model in (fresh, used):
        model.fit(FEATURES, SPEEDS)
    assert (fresh.predict(FEATURES).mean == used.predict(FEATURES).mean).all()


def test_choices_are_answered_as_their_features_are_or_not_at_all(name: str) -> None:
    model, none = COST_MODELS[name](1), np.zeros(0, dtype=np.float32)
    model.fit(FEATURES, SPEEDS)
    tables = CONVOLUTION.tables
    assert tables is not None
    opinion = model.tabled(tables, none)
    assert opinion is None or opinion(CHOICES).mean == pytest.approx(model.predict(FEATURES).mean, abs=1e-4)


def test_the_scale_of_speeds_does_not_matter(name: str) -> None:
    one, two = COST_MODELS[name](1), COST_MODELS[name](1)
    one.fit(FEATURES, SPEEDS)
    two.fit(FEATURES, 1024 * SPEEDS)
    assert one.predict(FEATURES).mean == pytest.approx(two.predict(FEATURES).mean, abs=1e-5)
