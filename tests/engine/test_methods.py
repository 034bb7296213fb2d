"""Presets and their parts."""

from __future__ import annotations

import json

import pytest

from tests.engine.synthetic_search import convolution, run
from workers.engine.errors import IllegalMethod, UnknownPart
from workers.engine.methods import METHODS, method


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_preset_builds_and_searches(name: str) -> None:
    chosen = method(name)
    proposer = chosen.make_proposer(convolution(), 1)
    outcomes = run(proposer, 24, plan=min(chosen.rhythm.plan, 12))
    assert len(outcomes) == 24
    assert chosen.make_evaluator().more([], None) >= 1
    assert json.dumps(chosen.evaluation)
    assert chosen.summary.endswith(".")


def test_presets_are_the_papers() -> None:
    assert method("autotvm").scheduler == "sequential"
    assert method("autotvm").parameters["explorer"] == {
        "chains": 128,
        "steps": 500,
        "patience": 50,
        "elite": 0.0,
        "exhaustive": False,
    }
    assert method("dynatune-paper").make_evaluator().more([], 1e-9) == 500
    assert method("auto").parameters == method("dynatune").parameters


def test_a_part_can_be_replaced_and_brings_its_own_defaults() -> None:
    made = method("autotvm", {"scheduler": "round_robin", "explorer": "random"})
    assert (made.scheduler, made.explorer, made.cost_model) == ("round_robin", "random", "xgboost")
    assert "explorer" not in made.parameters
    assert "evaluator" in made.parameters
    assert METHODS["autotvm"].scheduler == "sequential"


def test_equal_seeds_search_equally_and_other_seeds_do_not() -> None:
    runs = [run(method("dynatune").make_proposer(convolution(), seed), 40) for seed in (1, 1, 2)]
    plans = [[o.candidate for o in one] for one in runs]
    assert plans[0] == plans[1] != plans[2]


def test_unknown_names_list_the_legal_ones() -> None:
    with pytest.raises(UnknownPart, match=r"no method 'dynatun'; choose one of auto, autotvm, dynatune"):
        method("dynatun")
    with pytest.raises(UnknownPart, match=r"no explorer 'ant'; choose one of random, simulated_annealing"):
        method("auto", {"explorer": "ant"})
    with pytest.raises(UnknownPart, match=r"no scheduler 'x'; .*round_robin"):
        method("auto", {"scheduler": "x"})
    with pytest.raises(IllegalMethod, match="'optimizer' is no part of a method; parts are scheduler, explorer"):
        method("auto", {"optimizer": "adam"})


def test_an_explorer_without_a_cost_model_is_illegal_unless_random() -> None:
    with pytest.raises(IllegalMethod, match="choose cost_model xgboost or explorer random"):
        method("auto", {"cost_model": "none"})
    assert method("auto", {"cost_model": "none", "explorer": "random"}).cost_model == "none"
