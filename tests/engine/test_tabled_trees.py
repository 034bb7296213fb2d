"""Trees asked through tables say what the library says of the same configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION, TINY, speed
from workers.engine.cost_model import XGBoost
from workers.engine.methods import METHODS
from workers.engine.space import Configuration, Features, Sketch

VARIANTS: list[dict[str, Any]] = [
    {},
    {"target": "speed"},
    {"objective": "rank"},
    {"depth": 1},
    {"gamma": 0.5},
    {"rounds": 100, "subsample": 1.0},
]
NONE = np.zeros(0, dtype=np.float32)


def fitted(count: int, fixed: Features = NONE, sketch: Sketch = CONVOLUTION, **parameters: Any) -> XGBoost:
    choices = sketch.random(np.random.default_rng(3), count)
    rng = np.random.default_rng(4)
    speeds = (
        np.asarray([speed(Configuration(0, tuple(row))) for row in choices.tolist()])
        if sketch is CONVOLUTION
        else rng.random(count) * 1e9
    )
    # Points of other operators have other fixed features: trees ask for them too.
    behind = fixed * rng.integers(0, 2, size=(count, 1)).astype(np.float32)
    model = XGBoost(1, **parameters)
    model.fit(np.hstack([sketch.features(choices), behind]), speeds * (1 + behind.sum(axis=1)))
    return model


def differs(model: XGBoost, tables: Sequence[Features], fixed: Features = NONE, sketch: Sketch = CONVOLUTION) -> float:
    """Largest difference of the two opinions on 500 configurations, in doublings of the speed."""
    asked = sketch.random(np.random.default_rng(5), 500)
    opinion = model.tabled(tables, fixed)
    assert opinion is not None
    expected = model.predict(np.hstack([sketch.features(asked), np.tile(fixed, (500, 1))]))
    return float(np.abs(opinion(asked).mean - expected.mean).max())


@pytest.mark.parametrize("parameters", VARIANTS, ids=str)
@pytest.mark.parametrize("count", [3, 20, 400])
def test_the_opinion_is_the_same(parameters: dict[str, Any], count: int) -> None:
    tables = CONVOLUTION.tables
    assert tables is not None
    assert differs(fitted(count, **parameters), tables) < 1e-4


def test_features_that_all_share_stand_behind_the_tables() -> None:
    tables, fixed = CONVOLUTION.tables, np.asarray([3.0, 5.0], dtype=np.float32)
    assert tables is not None
    model = fitted(300, fixed)
    assert differs(model, tables, fixed) < 1e-4
    assert differs(model, tables, 0 * fixed) < 1e-4
    opinions = [model.tabled(tables, behind) for behind in (fixed, 0 * fixed)]
    asked = CONVOLUTION.random(np.random.default_rng(6), 50)
    assert all(opinions)
    assert not np.allclose(*(opinion(asked).mean for opinion in opinions if opinion))


def test_few_knobs_and_no_knobs() -> None:
    tables = TINY.tables
    assert tables is not None
    assert differs(fitted(40, sketch=TINY), tables, sketch=TINY) < 1e-4
    model = XGBoost(1)
    model.fit(np.zeros((4, 0), dtype=np.float32), np.ones(4))
    assert model.tabled((), NONE) is None


@pytest.mark.mutation
@pytest.mark.parametrize("knob", [0, 1, 2])
def test_mutation_a_table_that_is_upside_down_is_noticed(knob: int) -> None:
    tables = list(CONVOLUTION.tables or ())
    tables[knob] = tables[knob][::-1]
    assert differs(fitted(400), tables) > 1e-2


def test_without_a_fit_and_of_deep_trees_there_is_none() -> None:
    tables = CONVOLUTION.tables
    assert tables is not None
    assert XGBoost(1).tabled(tables, NONE) is None
    assert fitted(50, **METHODS["metaschedule"].parameters["cost_model"]).tabled(tables, NONE) is None
    assert fitted(50, depth=0).tabled(tables, NONE) is None, "no limit"
