"""What a method says of its parts arrives at them, and what they counted arrives in the report."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.pipeline.simulated_run import WALK, simulated
from workers.engine.methods import ROLES, Method, method
from workers.engine.search import COUNTERS


def rules(chosen: Method) -> set[str]:
    events = simulated(chosen=chosen, trials=400).events
    return {event["decision"]["rule"] for event in events if event["kind"] == "slot"}


def test_a_scheduler_s_parameters_reach_it() -> None:
    """The gradient scheduler decides by chance in a share of the slots; here always, or never."""
    always, never = (rules(method("gradient", {"scheduler.epsilon": share, **WALK})) for share in ("1.0", "0.0"))
    assert "gradient" not in always
    assert "epsilon" in always
    assert "gradient" in never
    assert "epsilon" not in never


@pytest.mark.parametrize("name", ["dynatune", "random"])
def test_the_report_has_every_counter_of_the_search(name: str) -> None:
    report = simulated(name, trials=300).report
    assert report["parts"] == {role: getattr(method(name), role) for role in ROLES}
    found = report["search"]
    assert set(found) == set(COUNTERS)
    assert found["proposed"] > 0
    assert (found["evaluations"] >= found["evaluations_to_best"] > 0) == (name == "dynatune")


def test_the_report_says_how_often_the_belief_gave_a_slot_to_another_than_round_robin() -> None:
    simulation = simulated(chosen=method("dynatune", {**WALK, "rhythm.plan": "8"}), trials=600)
    decisions = [event["decision"] for event in simulation.events if event["kind"] == "slot"]
    both = [one["decided_by_belief"] and one["differs_from_round_robin"] for one in decisions]
    assert 0 < simulation.report["belief_differs"] == sum(both) <= simulation.report["decided_by_belief"] < len(both)
    assert simulation.report["contextual"] is False


def test_the_report_says_how_often_programs_ran_and_why_their_timings_ended() -> None:
    simulation = simulated("random", trials=300)
    found = [m for m in simulation.measurements if m["seconds"]]
    told = simulation.report["timings"]
    assert told == {"runs": sum(m["runs"] for m in found), "stopped": Counter(m["stopped"] for m in found)}
    assert set(told["stopped"]) == {"complete", "rejected"}


def test_a_sampler_that_takes_fewer_makes_shorter_plans_and_the_run_goes_on() -> None:
    chosen = method("dynatune", {"sampler": "adaptive", "rhythm.plan": "32", **WALK})
    simulation = simulated(chosen=chosen, trials=500)
    found = simulation.report["search"]
    assert found["left_out"] > 0
    assert found["clusters"] >= found["walks"] > 0
    assert len(simulation.measurements) >= 500
