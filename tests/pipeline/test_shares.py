"""Who gets which part of a run: one operator after the other in equal times, and runs that tune some operators only."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS, WALK, Simulation, Wish, kept, simulated
from workers.engine.methods import method
from workers.engine.scheduler import Setting
from workers.landscapes import SimulatedClock, SyntheticLandscape
from workers.messages.events import Event
from workers.messages.spec import Budget
from workers.pipeline import TuningLoop

SECONDS = 240.0
SEQUENTIAL: dict[str, Any] = {"name": "sequential", "budget": Budget(seconds=SECONDS)}
LARGE = [operator.index for operator in OPERATORS if operator.size > 1000]
"""What a run of these seconds does not exhaust."""


def slots(simulation: Simulation) -> list[Event]:
    return [event for event in simulation.events if event["kind"] == "slot"]


def in_turn(simulation: Simulation) -> dict[int, list[float]]:
    """Lengths in seconds of the slots that the operators got before all had their parts."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for slot in slots(simulation):
        if slot["decision"]["rule"] == "sequential":
            found[slot["operator"]].append(slot["ended"] - slot["began"])
    return found


def equal(simulation: Simulation) -> bool:
    """The gate: every large operator had its equal part of the seconds that the warm-up left, the last slot beginning within
    it."""
    lengths, coming = in_turn(simulation), [operator.index for operator in OPERATORS if operator.size > 1]
    left = SECONDS - slots(simulation)[0]["began"]
    for place, index in enumerate(coming):
        part, of_one = left / (len(coming) - place), lengths[index]
        if index in LARGE and not sum(of_one[:-1]) < part <= sum(of_one):
            return False
        left -= sum(of_one)
    return True


def test_in_sequence_every_operator_gets_an_equal_part_of_the_seconds() -> None:
    simulation = simulated(**SEQUENTIAL)
    assert equal(simulation)
    order = [slot["operator"] for slot in slots(simulation) if slot["decision"]["rule"] == "sequential"]
    assert order == sorted(order)
    # What a space that was exhausted before its time did not take is for those to come: nothing remains.
    assert len(order) == len(slots(simulation))


@pytest.mark.mutation
@pytest.mark.parametrize("a_second", [2.0, 8.0])
def test_shares_by_an_assumed_rate_of_trials_are_noticed(a_second: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """8 trials a second was once taken for granted."""
    monkeypatch.setattr(TuningLoop, "_setting", lambda loop: Setting(0, 1e11, trials=a_second * SECONDS))
    assert not equal(simulated(**SEQUENTIAL))


def test_a_resumed_run_keeps_the_shares_it_began_with(tmp_path: Path) -> None:
    whole = simulated(**SEQUENTIAL)
    first = simulated(**SEQUENTIAL, wish=Wish("pause", 40))
    second = simulated(**SEQUENTIAL, history=kept(tmp_path, first.lines))
    assert 20.0 < first.events[-1]["clock"] < 0.8 * SECONDS
    found = [slot["operator"] for slot in (*slots(first), *slots(second))]
    assert found == [slot["operator"] for slot in slots(whole)]


def test_a_budget_of_trials_is_shared_out() -> None:
    plan = method("sequential").rhythm.plan
    simulation = simulated("sequential", trials=30 * plan)
    first = sum(slot["trials"] for slot in slots(simulation) if slot["operator"] == LARGE[0])
    assert first == pytest.approx(6 * plan, abs=plan)  # of five operators that have something to try


def test_only_operators_that_are_asked_for_get_slots_and_the_others_one_that_works() -> None:
    asked = [operator.index for operator in OPERATORS if operator.computes]
    simulation = simulated("dynatune", 300, tuned=asked)
    assert {slot["operator"] for slot in slots(simulation)} == set(asked) < {operator.index for operator in OPERATORS}
    others = [m for m in simulation.measurements if m["operator"] not in asked]
    assert {m["operator"] for m in others if m["seconds"]} == {o.index for o in OPERATORS} - set(asked)
    assert simulation.events[-1]["latency"] is not None


def half_broken(seed: int, clock: SimulatedClock) -> SyntheticLandscape:
    return SyntheticLandscape(seed, OPERATORS, clock, {"build": 0.5})


def test_an_operator_that_is_not_asked_for_has_slots_until_one_works() -> None:
    """One trial in the warm-up, of which half fail: the network must be whole."""
    chosen = method("dynatune", {"rhythm.warm_up": "1", **WALK})
    rescued = 0
    for seed in range(6):
        simulation = simulated(chosen=chosen, trials=200, tuned=[0], landscape=partial(half_broken, seed))
        others = [slot for slot in slots(simulation) if slot["operator"] != 0]
        assert all(slot["before"] is None for slot in others)
        rescued += len(others)
    assert rescued > 0


def test_a_run_of_operators_that_have_nothing_to_try_ends_at_once() -> None:
    single = [operator.index for operator in OPERATORS if operator.size == 1]
    simulation = simulated(budget=Budget(seconds=1e6), tuned=single)
    assert simulation.events[-1]["reason"] == "exhausted"
    assert slots(simulation) == []
