"""Which parts fit together is one check of the engine's and the form's; what it assumes of the engine is true there."""

from __future__ import annotations

from dataclasses import MISSING, fields
from inspect import signature
from typing import Any

import numpy as np
import pytest

from workers.engine.cost_model import COST_MODELS
from workers.engine.methods import METHODS, Rhythm, method
from workers.engine.sampler import SAMPLERS, Adaptive, AdaptiveProgram
from workers.engine.search import Search
from workers.landscapes.calibration import every_part
from workers.messages.composition import (
    BROUGHT,
    CLUSTERING,
    DRAWING,
    EVOLVING,
    GREEDY,
    MOST,
    POOL,
    UNSURE,
    Composition,
    inherited,
)

PARTS = {"explorer": "simulated_annealing", "sampler": "greedy", "cost_model": "xgboost"}


def defaults(of: Any) -> dict[str, object]:
    return {field.name: field.default for field in fields(of) if field.default is not MISSING}


def assumed_and_true() -> tuple[dict[str, object], dict[str, object]]:
    drawing = {name: one.default for name, one in signature(SAMPLERS[DRAWING]).parameters.items()}
    assumed, true = defaults(Composition), {**drawing, **defaults(Search), **defaults(Rhythm)}
    return assumed, {name: true[name] for name in assumed}


def test_what_a_preset_does_not_say_is_the_engine_s_default() -> None:
    assumed, true = assumed_and_true()
    assert assumed == true
    assert set(assumed) == {"acquisition", "contextual", "pool", "plan", "ahead", "chance", "features"}


@pytest.mark.mutation
def test_mutation_a_default_that_changed_in_the_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search.__dataclass_fields__["pool"], "default", 2.0)
    assumed, true = assumed_and_true()
    assert assumed != true


def test_samplers_of_which_something_is_known_are_registered() -> None:
    assert GREEDY in SAMPLERS
    assert [SAMPLERS[name] for name in CLUSTERING] == [Adaptive, AdaptiveProgram]


def test_the_explorer_that_asks_no_other_part_is_registered_and_its_preset_has_the_parts_it_brings() -> None:
    preset = METHODS[EVOLVING]
    assert preset.explorer == EVOLVING
    assert {role: getattr(preset, role) for role in BROUGHT} == BROUGHT
    assert method(EVOLVING).search.acquisition == "mean"


def test_a_replaced_part_leaves_its_numbers_and_a_sampler_brings_its_pool() -> None:
    preset = {"explorer": {"chains": 8}, "search": {"first": 64, "pool": 2.0}}
    assert inherited(preset, {}) == preset
    assert inherited(preset, {"explorer": "ppo"}) == {"search": preset["search"]}
    assert inherited(preset, {"sampler": "diverse"})["search"] == {"first": 64, "pool": POOL}
    assert inherited(preset, {"sampler": "greedy"})["search"] == {"first": 64}


@pytest.mark.parametrize("name", COST_MODELS)
def test_the_cost_models_without_a_spread_are_those_named(name: str) -> None:
    model, rng = COST_MODELS[name](seed=0), np.random.default_rng(0)
    features = rng.normal(size=(64, 4)).astype(np.float32)
    model.fit(features, np.exp(features[:, 0]).astype(np.float64))
    assert bool(model.predict(features).spread.any()) == (name not in UNSURE)


def test_a_contributed_sampler_has_a_pool_and_a_contributed_model_is_taken_at_its_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SAMPLERS, "mine", SAMPLERS["diverse"])
    monkeypatch.setitem(COST_MODELS, "gp", COST_MODELS["random_forest"])
    assert method("chameleon", {"sampler": "mine"}).search.pool == POOL
    assert method("dynatune", {"sampler": "mine"}).search.pool == POOL
    assert method("adatune", {"cost_model": "gp"}).search.contextual
    (timed,) = (one for one in every_part() if one.sampler == "mine")
    assert timed.search.pool == POOL


@pytest.mark.parametrize(
    ("parts", "search", "said"),
    [
        ({}, {}, ""),
        ({"cost_model": "none"}, {}, "explorer 'simulated_annealing' follows a cost model and there is none; choose"),
        ({"cost_model": "none", "explorer": "random"}, {}, ""),
        (
            {"explorer": "random", "cost_model": "random_forest"},
            {"contextual": True},
            "explorer 'random' is all chance; ",
        ),
        (
            {},
            {"contextual": True},
            "the contextual optimizer asks how sure the cost model is, and 'xgboost' does not tell",
        ),
        ({}, {"acquisition": "upper_bound"}, "acquisition 'upper_bound' asks how sure"),
        ({"sampler": "diverse"}, {}, "set search.pool to 8"),
        ({"sampler": "adaptive"}, {"pool": 2.0}, ""),
        ({"explorer": EVOLVING}, {}, ""),
        (
            {"explorer": EVOLVING, "sampler": "diverse"},
            {"pool": 8.0},
            "explorer 'metaschedule' brings its own cost model and chooses by itself, it would not ask sampler 'diverse'; "
            "choose sampler greedy and cost_model xgboost in a method that scores by the mean of knob features, or another "
            "explorer",
        ),
        ({"explorer": EVOLVING, "cost_model": "none"}, {}, "it would not ask cost_model 'none'; choose sampler greedy"),
        (
            {"explorer": EVOLVING, "cost_model": "random_forest"},
            {"contextual": True, "acquisition": "expected_improvement"},
            "cost_model 'random_forest', acquisition 'expected_improvement', the contextual optimizer; choose",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_the_reason_and_the_next_step(
    parts: dict[str, str], search: dict[str, object], said: str
) -> None:
    misfit = Composition.of({**PARTS, **parts}, {"search": search}).misfit
    assert said in misfit
    assert bool(misfit) == bool(said)


def test_a_long_plan_is_thinned_without_a_pool() -> None:
    plans = [{"rhythm": {"plan": plan}} for plan in (MOST, MOST + 1)]
    found = [bool(Composition.of({**PARTS, "sampler": "adaptive"}, plan).misfit) for plan in plans]
    assert found == [True, False]
