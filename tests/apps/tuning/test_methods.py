"""What is told of parts is what the engine has."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass, replace
from itertools import product
from typing import Any

import pytest

from apps.tuning.methods import OFFERED, PARTS, ROLES, VALUES, Part, misfit, replaced, titled
from apps.tuning.models import TuningRun
from workers.engine.acquisition import ACQUISITIONS
from workers.engine.belief.curves import CURVES
from workers.engine.errors import IllegalMethod
from workers.engine.methods import METHODS, Rhythm, method
from workers.engine.methods import ROLES as PARTS_OF_A_METHOD
from workers.engine.methods.method import REGISTRIES
from workers.engine.search import FEATURES, Search
from workers.landscapes.parameters import resolved
from workers.messages.methods import PRESETS

TOLD = [(role, part) for role, parts in PARTS.items() for part in parts]


def test_every_registered_part_is_told_once() -> None:
    told = {role: [part.name for part in parts] for role, parts in PARTS.items()}
    assert {role: set(told[role]) for role in PARTS_OF_A_METHOD} == {role: set(REGISTRIES[role]) for role in REGISTRIES}
    assert all(len(names) == len(set(names)) for names in told.values())
    assert set(ROLES) == set(PARTS) == {*PARTS_OF_A_METHOD, "search", "rhythm"}
    for role, parts in PARTS.items():
        titles = [part.title for part in parts]
        assert len(titles) == len(set(titles)), role


def test_a_run_may_have_every_part_but_the_scheduler_that_is_shown_recorded_curves() -> None:
    registered = {role: set(registry) for role, registry in REGISTRIES.items()}
    registered["scheduler"] -= {"oracle"}
    assert {role: set(names) for role, names in OFFERED.items()} == registered
    assert tuple(OFFERED) == PARTS_OF_A_METHOD


def test_the_longest_name_of_a_method_fits_its_column() -> None:
    assert max(len(name) for name in METHODS) <= TuningRun._meta.get_field("method").max_length


def test_what_a_parameter_may_be_is_told_where_it_is_a_name_of_the_engine_s() -> None:
    told = {name: {part.name for part in parts} for name, (_, parts) in VALUES.items()}
    assert told == {"curve": set(CURVES), "acquisition": set(ACQUISITIONS), "features": set(FEATURES)}


def engine_s_defaults(role: str, name: str) -> dict[str, Any]:
    if role not in REGISTRIES:
        return asdict({"search": Search, "rhythm": Rhythm}[role]())
    found = resolved(role, replace(METHODS["auto"], parameters={}, **{role: name}))
    return {parameter: asdict(value) if is_dataclass(value) else value for parameter, value in found.items()}


@pytest.mark.parametrize(("role", "part"), TOLD, ids=lambda one: getattr(one, "name", one))
def test_every_default_of_a_part_is_told_with_its_source(role: str, part: Part) -> None:
    assert part.parameters == engine_s_defaults(role, part.name)
    assert len(part.parameters) == len(part.numbers)
    assert all(number.source and number.role == role for number in part.numbers)
    assert part.text.endswith(".")


@pytest.mark.mutation
def test_mutation_a_default_that_changed_in_the_engine_is_not_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = next(part for part in PARTS["cost_model"] if part.name == "random_forest")
    monkeypatch.setitem(REGISTRIES, "cost_model", {"random_forest": lambda seed=0, trees=20: None})
    assert forest.parameters != engine_s_defaults("cost_model", "random_forest")


def engine_s_misfit(name: str, parts: dict[str, str]) -> str:
    try:
        method(name, parts)
    except IllegalMethod as error:
        return str(error)
    return ""


COMPOSED = [
    dict(zip(("explorer", "sampler", "cost_model"), names, strict=True))
    for names in product(*(("", *OFFERED[role]) for role in ("explorer", "sampler", "cost_model")))
]
"""Every way to replace or leave the parts on which it depends whether they fit."""


@pytest.mark.parametrize("name", PRESETS)
def test_the_form_refuses_what_the_engine_refuses_in_its_words(name: str) -> None:
    for chosen in COMPOSED:
        parts = replaced(name, chosen)
        assert misfit(name, chosen) == engine_s_misfit(name, parts), parts


@pytest.mark.mutation
def test_mutation_a_form_that_knows_fewer_numbers_than_the_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "adatune", replace(PRESETS["adatune"], numbers=()))
    parts = {"cost_model": "xgboost"}
    assert misfit("adatune", parts) != engine_s_misfit("adatune", parts)


def test_the_other_parts_fit_any_method() -> None:
    for name, role in product(PRESETS, ("scheduler", "evaluator")):
        for part in OFFERED[role]:
            assert engine_s_misfit(name, {role: part}) == misfit(name, {role: part}) == ""


def test_a_method_is_called_by_what_was_replaced_in_it() -> None:
    assert titled("dynatune", {}) == "DynaTune"
    assert titled("dynatune", {"scheduler": "round_robin"}) == "DynaTune with scheduler round_robin"
    three = {"cost_model": "none", "sampler": "greedy", "explorer": "random"}
    assert titled("auto", three) == "Recommended with explorer random, sampler greedy and cost model none"
    assert titled("of another version", {}) == "of another version"
    assert replaced("dynatune", {"scheduler": "dynatune", "sampler": "diverse", "evaluator": ""}) == {
        "sampler": "diverse"
    }
