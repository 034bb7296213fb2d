"""What a part costs is of the part as it is: its parameters, its code, and what it is asked."""

from __future__ import annotations

import inspect
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.landscapes.played import SHIPPED
from tests.landscapes.recorded import OPERATORS, costs
from workers.engine.methods import METHODS, REGISTRIES, Method, method
from workers.engine.scheduler import PAPER_RULE, PRODUCT_RULE, Setting, scheduler_named
from workers.landscapes import Charged, Costs, LandscapeError, SimulatedClock, sources
from workers.landscapes.calibration import completed, every_part, untimed
from workers.landscapes.costs import UNITS, key_of
from workers.landscapes.parameters import HANDED_ON, resolved


def with_numbers(name: str, role: str, **numbers: Any) -> Method:
    return replace(METHODS[name], parameters={**METHODS[name].parameters, role: numbers})


def test_a_part_is_priced_by_all_its_parameters_whoever_sets_them() -> None:
    for name, role, default, other in (
        ("adatune", "cost_model", {"trees": 10}, {"trees": 11}),
        ("chameleon", "explorer", {"steps": 64}, {"steps": 65}),
        ("dynatune", "scheduler", {"sampling": {"walkers": 40}}, {"sampling": {"walkers": 41}}),
        ("metaschedule", "explorer", {"population": 512}, {"population": 256}),
    ):
        plain = key_of(role, with_numbers(name, role))
        assert key_of(role, with_numbers(name, role, **default)) == plain
        assert key_of(role, with_numbers(name, role, **other)) != plain


def test_a_step_costs_the_same_where_small_sketches_are_scored_whole() -> None:
    one, other = (with_numbers("dynatune", "explorer", exhaustive=whole) for whole in (True, False))
    assert key_of("explorer", one) == key_of("explorer", other)


def test_a_step_costs_the_same_whatever_the_temperature_is_of() -> None:
    one, other = (with_numbers("dynatune", "explorer", differences=of) for of in ("log", "speed"))
    assert key_of("explorer", one) == key_of("explorer", other)


def test_a_step_costs_the_same_whatever_the_entropy_is_of() -> None:
    one, other = (with_numbers("chameleon", "explorer", spread=of) for of in ("action", "knob"))
    assert key_of("explorer", one) == key_of("explorer", other)


@pytest.mark.parametrize("machine", sorted(SHIPPED.glob("*/costs.json")), ids=lambda path: path.parent.name)
def test_every_method_can_be_replayed_by_the_prices_that_are_shipped(machine: Path) -> None:
    found = Costs.read(machine)
    assert [
        key_of(role, chosen) for chosen in METHODS.values() for role in UNITS if found.known(role, chosen) is None
    ] == []


@pytest.mark.mutation
def test_a_default_that_changed_in_the_engine_has_no_price(monkeypatch: pytest.MonkeyPatch) -> None:
    found, chosen = costs(), METHODS["adatune"]
    found.of("cost_model", chosen)
    monkeypatch.setitem(REGISTRIES, "cost_model", {"random_forest": lambda seed=0, trees=20: None})
    with pytest.raises(LandscapeError, match="landscape calibrate"):
        found.of("cost_model", chosen)


def test_factories_that_hand_parameters_on_are_known() -> None:
    """Of all others the signature has every parameter."""
    opaque = {
        (role, name)
        for role, registry in REGISTRIES.items()
        for name, factory in registry.items()
        if any(one.kind is one.VAR_KEYWORD for one in inspect.signature(factory).parameters.values())
    }
    assert opaque == set(HANDED_ON)
    for (role, name), behind in HANDED_ON.items():
        if behind in ((PRODUCT_RULE,), (PAPER_RULE,)):
            made = scheduler_named(name, Setting(0, 1e12))
            assert (vars(made)["_rule"],) == behind, (role, name)


def test_every_part_is_made_from_the_parameters_it_resolves_to() -> None:
    for one in every_part():
        if one.scheduler != "oracle":
            whole = {**one.parameters, "explorer": resolved("explorer", one), "sampler": resolved("sampler", one)}
            made = replace(one, parameters={**whole, "cost_model": resolved("cost_model", one)})
            made.make_proposer(OPERATORS[0], 0)
            assert [key_of(role, made) for role in UNITS] == [key_of(role, one) for role in UNITS]


def test_what_has_no_price_is_timed_beside_a_like_that_has() -> None:
    """The likes are found by the parameters that their keys say, all of them."""
    found, chosen = costs(), method("autotvm", {"explorer.chains": "8"})
    ((role, _, like),) = untimed(found, [chosen])
    assert role == "explorer"
    assert key_of(role, like) in found.seconds
    more = completed(Costs(found.seconds, "none", {"explorer": "other code"}), [chosen])
    assert more.of("explorer", chosen)["step"] > 0
    assert more.sources == {"explorer": "other code"}


@pytest.mark.parametrize("changes", [{"cost_model.rounds": "30"}, {"cost_model.depth": "2"}], ids=str)
def test_trees_that_nobody_timed_pay_for_their_tables(changes: dict[str, str]) -> None:
    """Their like may have none, as TVM's deep trees."""
    chosen, deep = method("auto", changes), METHODS["metaschedule"]
    prices = {**dict.fromkeys(UNITS["cost_model"], 1e-3), "table": 0.0, "asked": 0.0, "asked_row": 0.0}
    timed = {key: of for key, of in costs().seconds.items() if not key.startswith("cost_model xgboost")}
    found = Costs({**timed, key_of("cost_model", deep): prices})
    more = completed(found, [chosen]).of("cost_model", chosen)
    assert min(more["table"], more["asked"]) > 0


def test_who_knows_the_future_pays_nothing_whatever_its_parameters() -> None:
    """Prices of before it had one of them are as good."""
    for ahead in ("null", "1"):
        chosen = method("auto", {"scheduler": "oracle", "scheduler.ahead": ahead})
        assert untimed(costs(), [chosen]) == []
        assert Costs({}, "none").decision(chosen, 30) == 0.0


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("file", "older"),
    [("explorer/starts.py", ["explorer"]), ("belief/belief.py", ["scheduler"]), ("proposer.py", [])],
)
def test_prices_know_the_code_that_was_timed(
    file: str, older: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = costs()
    assert timed.older == []
    engine = shutil.copytree(sources.ENGINE, tmp_path / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "ENGINE", engine)
    path = engine / file
    path.write_text(path.read_text() + "\n# slower\n")
    monkeypatch.setattr("workers.landscapes.costs.digests", sources.digests.__wrapped__)
    assert timed.older == older


def test_costs_remember_their_sources(tmp_path: Path) -> None:
    costs().write(tmp_path / "costs.json")
    assert Costs.read(tmp_path / "costs.json") == costs()
    (tmp_path / "costs.json").write_text('{"machine": "", "seconds": {}}')
    with pytest.raises(LandscapeError, match=r"damaged.*landscape calibrate"):
        Costs.read(tmp_path / "costs.json")


def test_prices_from_before_a_unit_was_timed_are_none() -> None:
    chosen = METHODS["random"]
    of = costs().of("cost_model", chosen)
    older = {unit: price for unit, price in of.items() if unit != "table"}
    with pytest.raises(LandscapeError, match=r"nobody timed cost_model none.*landscape calibrate"):
        Costs({**costs().seconds, key_of("cost_model", chosen): older}).of("cost_model", chosen)


def test_a_table_is_charged_once_and_each_row_that_is_asked_of_it() -> None:
    chosen, clock = METHODS["dynatune"], SimulatedClock()
    dear = {**dict.fromkeys(UNITS["cost_model"], 0.0), "table": 100.0, "asked": 10.0, "asked_row": 1.0}
    prices = Costs({**costs().seconds, key_of("cost_model", chosen): dear})
    model = Charged.over(chosen, prices, clock).make_cost_model(OPERATORS[0], 0)
    tables, none = (np.eye(4, dtype=np.float32),), np.zeros(0, dtype=np.float32)
    assert model.tabled(tables, none) is None
    model.fit(tables[0], np.arange(1.0, 5.0))
    assert clock.now() == 0.0
    opinion = model.tabled(tables, none)
    assert opinion is not None
    assert len(opinion(np.zeros((5, 1), dtype=np.int32)).mean) == 5
    assert clock.now() == 115.0


def test_a_decision_costs_more_where_there_are_more_operators() -> None:
    found = costs().decision(METHODS["dynatune"], 8), costs().decision(METHODS["dynatune"], 40)
    assert found == (pytest.approx(9e-5), pytest.approx(41e-5))


def test_a_row_of_features_is_charged_where_a_model_is_asked_and_fitted() -> None:
    chosen, clock = METHODS["random"], SimulatedClock()
    dear = {unit: 1.0 if unit == "feature_row" else 0.0 for unit in UNITS["cost_model"]}
    prices = Costs({**costs().seconds, key_of("cost_model", chosen): dear})
    model = Charged.over(chosen, prices, clock).make_cost_model(OPERATORS[0], 0)
    model.fit(np.zeros((3, 2), dtype=np.float32), np.zeros(3))
    assert clock.now() == 3.0
    model.predict(np.zeros((5, 2), dtype=np.float32))
    assert clock.now() == 8.0
