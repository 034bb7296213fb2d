"""Presets and their parts."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.engine.synthetic_search import convolution, measured, run
from workers.engine.errors import IllegalMethod, UnknownPart
from workers.engine.explorer.evolutionary import METASCHEDULE as EVOLUTION
from workers.engine.methods import METHODS, ROLES, Method, method
from workers.engine.methods.rules import check_legal
from workers.engine.scheduler import Setting, scheduler_named
from workers.engine.search import COUNTERS
from workers.engine.space import Configuration
from workers.messages.causes import DUPLICATE
from workers.messages.composition import CLUSTERING
from workers.messages.methods import BEST

QUICK = {
    "simulated_annealing": {"chains": 16, "steps": 20},
    "ppo": {"episodes": 16, "together": 8, "steps": 8, "minibatch": 64},
}
"""Walks cut short; what a preset sets beside these stays, but for first plans of 64."""


def quick(chosen: Method) -> Method:
    explorer = {**chosen.parameters.get("explorer", {}), **QUICK.get(chosen.explorer, {})}
    search = {**chosen.parameters.get("search", {}), "first": min(16, chosen.search.first)}
    return replace(chosen, parameters={**chosen.parameters, "explorer": explorer, "search": search})


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_preset_builds_and_searches(name: str) -> None:
    chosen = method(name)
    assert chosen.make_proposer(convolution(), 1)
    proposer = quick(chosen).make_proposer(convolution(), 1)
    outcomes = run(proposer, 64, plan=16)
    assert len(outcomes) == 64
    new = [outcome.candidate.configuration for outcome in outcomes if not outcome.candidate.round]
    assert len(set(new)) == len(new) >= 60, "but for a doubtful best and its rival, twice"
    counters = proposer.counters
    assert set(counters) == set(COUNTERS)
    assert counters["walks"] > 0
    assert (counters["evaluations"] >= counters["evaluations_to_best"] > 0) == (chosen.explorer != "random")
    assert counters["evaluations"] > 0 or chosen.explorer == "random"
    assert (counters["clusters"] > 0) == (chosen.sampler in CLUSTERING)
    assert (counters["left_out"] > 0) <= (chosen.sampler in CLUSTERING)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_preset_s_parts_are_registered_and_fit_together(name: str) -> None:
    chosen = method(name)
    assert chosen.make_evaluator().more([], None) >= 1
    assert json.dumps(chosen.evaluation)
    assert scheduler_named(chosen.scheduler, Setting(0, 1e12), **chosen.parameters.get("scheduler", {}))
    assert chosen.rhythm.plan >= 1
    assert set(chosen.parameters) <= {*ROLES, "search", "rhythm"}
    assert chosen.name == name
    assert re.fullmatch(r"[a-z_-]{1,30}", name)


def test_ablations_differ_in_the_part_they_are_named_after() -> None:
    base, both = parts("autotvm"), parts("chameleon-paper")
    assert (both["explorer"][0], both["sampler"][0]) == ("ppo", "adaptive")
    assert parts("chameleon-sa") == base
    assert parts("chameleon-ae") == {**base, "explorer": both["explorer"]}
    sampling = {"starts": 1, "first": 0, "epsilon": 0.0}
    sampled = {**base, "sampler": both["sampler"], "search": ("", sampling)}
    assert parts("chameleon-sa-as") == sampled
    iterations = {"rhythm": ("", {**base["rhythm"][1], "slots": 16})}
    assert both == {**sampled, "explorer": both["explorer"], **iterations}
    whole = parts("adatune-paper")
    assert whole["evaluator"][0] == "adaptive"
    assert parts("adatune-evaluator") == {**base, "evaluator": whole["evaluator"]}
    improvement = {"starts": 1, "first": 16, "acquisition": "expected_improvement"}
    assert whole["search"] == ("", {**improvement, "contextual": True})
    assert parts("adatune-surrogate") == {**whole, "search": ("", {**improvement, "epsilon": 0.05})}
    assert parts("adatune-contextual") == {**whole, "evaluator": base["evaluator"]}


def test_programs_differ_from_their_papers_in_what_their_authors_programmed_otherwise() -> None:
    assert parts("chameleon-program") == {
        **parts("chameleon-paper"),
        "explorer": parts("chameleon-program")["explorer"],
        "sampler": ("adaptive-program", {}),
        "search": ("", {"starts": 1, "first": 32, "epsilon": 0.0}),
    }
    assert parts("dynatune-program") == {
        **parts("dynatune-paper"),
        "scheduler": (
            "dynatune-paper",
            {"score": "speed", "prior": False, "pieces": False, "c_fast": 2.0, "patience": 50},
        ),
        "evaluator": ("adaptive", {**parts("adatune-paper")["evaluator"][1], "extremes": True}),
        "search": ("", {"starts": 1, "first": 16, "ahead": 32}),
        "rhythm": ("", {"plan": 8, "warm_up": 32, "slot_seconds": 20.0}),
    }


@pytest.mark.parametrize(
    ("name", "sampled"), [("chameleon-paper", True), ("chameleon-sa-as", True), ("chameleon-program", False)]
)
def test_the_first_plan_is_sampled_in_the_paper_and_random_in_the_program(name: str, sampled: bool) -> None:
    proposer = quick(method(name)).make_proposer(convolution(), 1)
    proposer.observe([measured(candidate) for candidate in proposer.propose(1)])  # the start
    origins = Counter(candidate.origin for candidate in proposer.propose(64))
    assert (origins["explorer"] > 0) is (proposer.counters["left_out"] > 0) is sampled
    assert (origins.total() < 16) is sampled
    assert origins["random"] == 64 or sampled


PUBLISHED = [
    name
    for name in sorted(METHODS)
    if name == "autotvm" or name.startswith(("adatune-", "chameleon-")) or name.endswith(("-paper", "-program"))
]


@pytest.mark.parametrize("name", [*PUBLISHED, "auto", "dynatune", "chameleon", "metaschedule"])
def test_what_is_as_published_begins_with_one_default_configuration_and_the_rest_with_all_there_are(name: str) -> None:
    """It makes the latency finite; what else is measured is the search's."""
    start = tuple(Configuration(0, (0, place, 0, 0, 0, 0)) for place in range(3))
    plan = quick(method(name)).make_proposer(replace(convolution(), start=start), 1).propose(64)
    begun = start[:1] if name in PUBLISHED else start
    assert [candidate.configuration for candidate in plan[: len(begun)]] == list(begun)
    assert Counter(candidate.origin for candidate in plan)["start"] == len(begun) < len(plan)


def test_a_deviation_of_a_program_can_be_chosen_alone() -> None:
    made = method("dynatune-paper", {"scheduler.score": "speed", "scheduler.prior": "false"})
    assert made.parameters["scheduler"] == {"score": "speed", "prior": False}
    assert method("auto", {"scheduler.prior": "false"}).parameters["scheduler"] == {"prior": False}
    with pytest.raises(IllegalMethod, match="score 'speed' is in GFLOP/s"):
        method("auto", {"scheduler.score": "speed"})
    assert "score" not in method("dynatune-program", {"scheduler": "dynatune"}).parameters.get("scheduler", {})
    chosen = method("chameleon-paper", {"sampler.mode": "stepped", "explorer.still": "0.75"})
    assert (chosen.parameters["sampler"]["mode"], chosen.parameters["explorer"]["still"]) == ("stepped", 0.75)


def parts(name: str) -> dict[str, tuple[str, dict[str, Any]]]:
    chosen = METHODS[name]
    named = {role: str(getattr(chosen, role)) for role in ROLES} | {"search": "", "rhythm": ""}
    return {role: (part, dict(chosen.parameters.get(role, {}))) for role, part in named.items()}


@pytest.mark.parametrize(
    "name",
    ["sequential", "round_robin", "random_slots", "linear", "dynamic_round_robin", "dynamic_random", "epsilon_greedy",
     "softmax", "gradient"],
)  # fmt: skip
def test_rivals_of_dynatune_differ_in_the_scheduler_alone(name: str) -> None:
    rival = METHODS[name]
    assert replace(rival, name="", scheduler="") == replace(METHODS["dynatune"], name="", scheduler="")
    assert rival.scheduler == {"random_slots": "random"}.get(name, name)


def test_presets_are_the_papers() -> None:
    assert method("autotvm").scheduler == "sequential"
    assert method("autotvm").parameters["explorer"] == {
        "chains": 128,
        "steps": 500,
        "patience": 50,
        "elite": 0.0,
        "exhaustive": False,
        "differences": "speed",
    }
    assert method("dynatune-paper").make_evaluator().more([], 1e-9) == 500


def test_a_part_can_be_replaced_and_brings_its_own_defaults() -> None:
    made = method("autotvm", {"scheduler": "round_robin", "explorer": "random"})
    assert (made.scheduler, made.explorer, made.cost_model) == ("round_robin", "random", "xgboost")
    assert "explorer" not in made.parameters
    assert "evaluator" in made.parameters
    assert METHODS["autotvm"].scheduler == "sequential"


def test_parameters_are_changed_by_their_names_alone() -> None:
    made = method("autotvm", {"explorer.chains": "8", "search.acquisition": "mean", "rhythm.plan": "32"})
    assert made.parameters["explorer"] == {**METHODS["autotvm"].parameters["explorer"], "chains": 8}
    assert made.search.acquisition == "mean"
    assert made.rhythm.plan == 32
    assert METHODS["autotvm"].rhythm.plan == 64
    swapped = method("autotvm", {"explorer": "evolutionary", "explorer.population": "64"})
    assert swapped.parameters["explorer"] == {"population": 64}


@pytest.mark.parametrize(
    ("name", "place", "word", "meant"),
    [
        ("auto", "search.twins", "off", False),
        ("adatune", "search.contextual", "off", False),
        ("auto", "explorer.exhaustive", "off", False),
        ("dynatune-paper", "scheduler.onward", "on", True),
        ("dynamic_random", "scheduler.patience", "none", None),
        ("auto", "scheduler.sampling", '{"points": "none"}', {"points": None}),
    ],
)
def test_the_words_of_the_pages_may_be_typed(name: str, place: str, word: str, meant: object) -> None:
    role, _, number = place.partition(".")
    assert method(name, {place: word}).parameters[role][number] == meant


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        (
            "auto",
            {"explorer.exhaustive": "no"},
            "explorer.exhaustive 'no' must be on or off; correct it or leave it out",
        ),
        ("auto", {"scheduler.onward": "1"}, "scheduler.onward 1 must be on or off"),
        ("auto", {"scheduler.rescue": "x"}, "scheduler.rescue 'x' must be a whole number;"),
        ("auto", {"scheduler.patience": "1.5"}, "scheduler.patience 1.5 must be a whole number or none"),
        ("auto", {"scheduler.fast_latency": "none"}, "scheduler.fast_latency none must be a finite number"),
        ("auto", {"scheduler.curve": "off"}, "scheduler.curve off must be a word"),
        ("auto", {"scheduler.sampling": '{"walkers": true}'}, "scheduler.sampling.walkers on must be a whole number"),
        ("auto", {"scheduler.sampling": "[]"}, r"scheduler.sampling \[\] must be numbers by name"),
        ("softmax", {"scheduler.temperature": "off"}, "scheduler.temperature off must be a finite number"),
        ("gradient", {"scheduler.limit": "none"}, "scheduler.limit none must be a whole number"),
        ("chameleon", {"explorer.still": "on"}, r"explorer.still on must be a finite number \(under 1e\+38\) or none"),
        ("auto", {"search.pool": "1e999"}, "search.pool inf must be a finite number"),
        ("auto", {"search.curiosity": "1e999"}, "search.curiosity inf must be a finite number"),
        ("auto", {"cost_model.gamma": "1e300"}, r"cost_model.gamma 1e\+300 must be a finite number \(under 1e\+38\)"),
        ("auto", {"cost_model.floor": "-1e999"}, "cost_model.floor -inf must be a finite number"),
        ("metaschedule", {"explorer.moves": '{"tile": 1e999}'}, "explorer.moves .* must be numbers by name or none"),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, changed: dict[str, str], said: str) -> None:
    with pytest.raises(IllegalMethod, match=said):
        method(name, changed)


@pytest.mark.parametrize("place", ["explorer.luck", "search.luck", "rhythm.plan", "scheduler.luck", "cook.salt"])
def test_parameters_that_nothing_takes_are_refused(place: str) -> None:
    with pytest.raises(IllegalMethod, match=place.rpartition(".")[2]):
        method("autotvm", {place: "0"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scheduler": "oracle", "scheduler.ahead": "0"}, "ahead"),
        ({"scheduler": "oracle", "scheduler.luck": "1"}, "luck"),
        (
            {"scheduler.sampling": '{"again": 0}'},
            "again 0, points 10: walkers, samples, again and points are 1 at least",
        ),
        ({"scheduler.patience": "0"}, "patience 0 must be 1 configuration or more"),
        ({"scheduler": "softmax", "scheduler.patience": "-1"}, "patience -1 must be"),
        (
            {"scheduler": "round_robin", "scheduler.patience": "0"},
            "patience 0 must be 1 configuration or more, or none",
        ),
        ({"scheduler": "dynamic_random", "scheduler.patience": "0"}, "patience 0 must be"),
        ({"scheduler": "linear", "scheduler.patience": "0"}, "patience 0 must be"),
        ({"scheduler": "sequential", "scheduler.patience": "0"}, "patience 0 must be"),
        ({"scheduler": "gradient", "scheduler.patience": "-1"}, "patience -1 must be"),
        ({"scheduler": "gradient", "scheduler.limit": "-1"}, "rescue or limit -1 must be 0 or more"),
        ({"scheduler.rescue": "-1"}, "rescue or limit -1 must be 0 or more"),
        ({"scheduler.fast_latency": "-1"}, "fast_latency -1 start at 0"),
        ({"scheduler.sampling": '{"points": -1}'}, "points -1: walkers, samples, again and points are 1 at least"),
        ({"scheduler.c": "-1"}, "c -1, c_fast"),
        ({"rhythm.plan": "2.5"}, "plan 2.5"),
        ({"search.refit": "-1"}, "refit -1"),
        ({"search.patience": "2.5"}, "patience 2.5 must be a whole number"),
        ({"search.starts": "0"}, "starts 0 must be 1 configuration or more, or none for all"),
        ({"explorer.chains": "2.5"}, "chains 2.5 must be a whole number"),
        ({"evaluator": "fixed", "evaluator.runs": "2.5"}, "runs 2.5 must be a whole number"),
        ({"evaluator": "fixed", "evaluator.seconds": "Infinity"}, "Infinity is no finite number"),
        ({"scheduler": "gradient", "scheduler.window": "2.5"}, "window 2.5 must be a whole number"),
        ({"explorer": "ppo", "explorer.episodes": "12.5"}, "12.5 must be a whole number"),
        ({"scheduler.sampling": '{"steps": 150.5}'}, "150.5 must be a whole number"),
        ({"cost_model.depth": "-1"}, "depth -1 starts at 0"),
        ({"cost_model.eta": "2"}, "eta 2"),
        ({"cost_model.floor": "-61"}, "floor below 0 and at least -60"),
        ({"cost_model.objective": "rank", "cost_model.weighted": "on"}, "weighted is of single points"),
        ({"scheduler.sampling": '{"steps": 50}'}, "50 steps of which 100 are thrown away"),
        (
            {"scheduler.sampling": '{"walkers": 4}'},
            "4 walkers is of too few for curve 'log_power' and its noise; take 8",
        ),
    ],
)
def test_numbers_that_a_run_would_break_off_with_are_refused(changed: dict[str, str], said: str) -> None:
    with pytest.raises(IllegalMethod, match=said):
        method("auto", changed)


def test_metaschedule_is_tvm_s_numbers() -> None:
    made = method("metaschedule")
    assert (made.scheduler, made.explorer, made.rhythm.plan, made.search.epsilon) == (
        "gradient",
        "metaschedule",
        64,
        0.05,
    )
    assert (EVOLUTION["population"], EVOLUTION["generations"], EVOLUTION["mutation"]) == (512, 4, 0.85)
    assert (EVOLUTION["measured"], EVOLUTION["crossover"]) == (0.2, 0.0)


def test_equal_seeds_search_equally_and_other_seeds_do_not() -> None:
    runs = [run(method("dynatune").make_proposer(convolution(), seed), 40) for seed in (1, 1, 2)]
    plans = [[o.candidate for o in one] for one in runs]
    assert plans[0] == plans[1] != plans[2]


def test_unknown_names_list_the_legal_ones() -> None:
    with pytest.raises(
        UnknownPart, match=r"no method 'dynatun'; choose one of adatune, adatune-contextual, .*, dynatune,"
    ):
        method("dynatun")
    with pytest.raises(
        UnknownPart,
        match=r"no explorer 'ant'; choose one of evolutionary, metaschedule, ppo, random, simulated_annealing",
    ):
        method("auto", {"explorer": "ant"})
    with pytest.raises(UnknownPart, match=r"no scheduler 'x'; .*round_robin"):
        method("auto", {"scheduler": "x"})
    with pytest.raises(IllegalMethod, match="'optimizer' is no part of a method; parts are scheduler, explorer"):
        method("auto", {"optimizer": "adam"})


@pytest.mark.parametrize(
    ("name", "changed", "said"),
    [
        ("auto", {"cost_model": "none"}, "choose cost_model xgboost or explorer random"),
        ("chameleon", {"cost_model": "none"}, "explorer 'ppo' follows a cost model and there is none"),
        ("adatune", {"explorer": "random"}, "explorer 'random' is all chance; choose another explorer"),
        (
            "adatune",
            {"cost_model": "xgboost"},
            "contextual optimizer asks how sure .* 'xgboost' does not tell; choose cost_mod",
        ),
        (
            "adatune-surrogate",
            {"cost_model": "xgboost"},
            "'expected_improvement' asks how sure .*choose cost_model random_f",
        ),
        ("adatune-surrogate", {"cost_model": "none", "explorer": "random"}, "'none' does not tell"),
        ("chameleon", {"explorer": "metaschedule"}, "would not ask sampler 'adaptive'; choose sampler greedy"),
        ("adatune", {"explorer": "metaschedule"}, "cost_model 'random_forest', .*, the contextual optimizer; choose"),
        ("metaschedule", {"search.features": "lowered"}, "would not ask features 'lowered'; choose .* knob features"),
        ("metaschedule", {"cost_model": "random_forest"}, "would not ask cost_model 'random_forest'; choose sampler"),
        ("chameleon", {"sampler": "adaptive-program", "rhythm.plan": "3"}, "leaves the last 3 .* set rhythm.plan to 4"),
        (
            "chameleon",
            {"sampler": "adaptive-program", "sampler.chance": "32"},
            "plan of 32 has no others; set rhythm.plan",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_the_next_step(name: str, changed: dict[str, str], said: str) -> None:
    with pytest.raises(IllegalMethod, match=said):
        method(name, changed)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("chameleon", {"explorer": "metaschedule"}),
        ("adatune", {"explorer": "metaschedule"}),
        ("metaschedule", {"cost_model": "random_forest"}),
    ],
)
def test_a_run_that_was_made_of_parts_that_nobody_asks_is_read_back(name: str, changed: dict[str, str]) -> None:
    with pytest.raises(IllegalMethod, match="would not ask"):
        method(name, changed)
    assert method(name, changed, stored=True).explorer == "metaschedule"


def test_a_run_that_cannot_search_is_refused_whoever_made_it() -> None:
    for name, changed in (("auto", {"cost_model": "none"}), ("metaschedule", {"cost_model": "none"})):
        with pytest.raises(IllegalMethod, match="follows a cost model and there is none"):
            method(name, changed, stored=True)
    with pytest.raises(UnknownPart):
        method("auto", {"explorer": "ant"}, stored=True)


@pytest.mark.parametrize("number", ["search.twins", "explorer.exhaustive"])
def test_a_run_that_was_given_a_number_for_a_truth_goes_on(number: str) -> None:
    with pytest.raises(IllegalMethod, match="must be on or off"):
        method("auto", {number: "1"})
    method("auto", {number: "1"}, stored=True)


def test_a_sampler_that_has_nothing_to_choose_from_is_refused() -> None:
    with pytest.raises(IllegalMethod, match=r"gives it no more; set search.pool to 8"):
        check_legal(replace(METHODS["chameleon"], parameters={}))


def test_clusters_of_a_whole_plan_are_the_paper_s_and_of_a_short_one_refused() -> None:
    """Table 7: 64 candidates an iteration, of which the sampler measures fewer."""
    assert method("chameleon-paper").search.pool == 1
    assert method("chameleon-sa-as").rhythm.plan == 64
    with pytest.raises(IllegalMethod, match="gives it no more"):
        method("chameleon-paper", {"rhythm.plan": "63"})
    with pytest.raises(IllegalMethod, match="gives it no more"):
        method("autotvm", {"sampler": "diverse", "search.pool": "1"})


@pytest.mark.parametrize("name", ["autotvm", "chameleon-program", "adatune-paper", "dynatune-program"])
def test_the_second_plan_is_guided_also_where_some_of_the_first_was_not_built(name: str) -> None:
    chosen = method(name)
    fast = replace(quick(chosen), parameters=quick(chosen).parameters | {"search": chosen.parameters["search"]})
    proposer, plan = fast.make_proposer(convolution(), 1), chosen.search.ahead or chosen.rhythm.plan
    proposer.observe([measured(candidate) for candidate in proposer.propose(1)])
    first = proposer.propose(plan)
    assert {candidate.origin for candidate in first} == {"random"}
    proposer.observe([replace(measured(one), seconds=None, cause=DUPLICATE) for one in first[:4]])
    proposer.observe([measured(one) for one in first[4:]])
    assert Counter(candidate.origin for candidate in proposer.propose(plan))["explorer"] > 0


def test_random_search_needs_no_cost_model() -> None:
    assert method("auto", {"cost_model": "none", "explorer": "random"}).cost_model == "none"


def test_a_replaced_sampler_brings_its_pool() -> None:
    assert method("autotvm", {"sampler": "diverse"}).parameters["search"] == {"starts": 1, "first": 32, "pool": 8.0}
    assert method("auto", {"sampler": "adaptive"}).search.pool == 8
    assert method("chameleon", {"sampler": "greedy"}).parameters["search"] == {"first": 16}


def test_auto_is_what_measures_best_with_twins_that_try_each_others_best() -> None:
    auto, best = METHODS["auto"], METHODS[BEST.name]
    assert replace(auto, name=best.name, parameters=best.parameters) == best
    assert auto.search == replace(best.search, twins=True, earlier=128, informed=True)


def test_the_published_ablations_keep_to_what_they_ablate() -> None:
    """Of what Chameleon measures nothing is random (3.1), and AdaTune anneals as AutoTVM does, but of FLOP/s."""
    for name in ("chameleon-paper", "chameleon-sa-as"):
        assert METHODS[name].search.epsilon == 0
    assert METHODS["chameleon-sa"].search.epsilon == METHODS["autotvm"].search.epsilon == 0.05
    autotvm = METHODS["autotvm"].parameters["explorer"]
    assert METHODS["adatune-paper"].parameters["explorer"] == {**autotvm, "chains": 64, "differences": "flops"}
