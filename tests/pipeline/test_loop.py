"""A run from start to end: reproducible, within its budget, honest about its clock."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.pipeline.simulated_run import OPERATORS, WALK, Wish, kept, simulated
from workers.engine.errors import IllegalMethod
from workers.engine.methods import method
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.landscapes import SimulatedClock, SyntheticLandscape, synthetic_operators
from workers.landscapes.synthetic import FAULTS
from workers.messages.events import Event, encode
from workers.messages.spec import Budget
from workers.pipeline.books import Books


def only(*kinds: str) -> tuple[Operator, ...]:
    """Synthetic operators of some kinds, numbered anew."""
    found = (operator for operator in synthetic_operators(1, 10) if operator.name.startswith(kinds))
    return tuple(replace(operator, index=index) for index, operator in enumerate(found))


METHODS = ("dynatune", "round_robin", "autotvm", "random")


@pytest.mark.parametrize("name", METHODS)
def test_a_seed_reproduces_the_event_log_byte_for_byte(name: str) -> None:
    first, second = simulated(name), simulated(name)
    assert first.lines == second.lines
    assert simulated(name, seed=8).lines != first.lines


@pytest.mark.parametrize("name", METHODS)
def test_spent_categories_add_up_to_the_clock(name: str) -> None:
    events = simulated(name).events
    for event in events:
        if event["kind"] == "batch" and "spent" in event:
            assert sum(event["spent"].values()) == pytest.approx(event["clock"], abs=1e-4)
    assert sum(events[-1]["report"]["spent"].values()) == pytest.approx(events[-1]["clock"], abs=1e-4)


def test_warm_up_gives_every_operator_a_valid_configuration_before_the_first_slot() -> None:
    events = simulated(faults={}).events
    batches = [event for event in events if event["kind"] == "batch"]
    tuning = next(i for i, event in enumerate(events) if event["kind"] == "phase" and event["name"] == "tuning")
    warm_up = [event for event in events[:tuning] if event["kind"] == "batch"]
    assert len(warm_up) == 1
    assert sorted(m["operator"] for m in warm_up[0]["measurements"]) == list(range(len(OPERATORS)))
    assert warm_up[0]["latency"] is not None
    assert all(event["latency"] is not None for event in batches)


def test_warm_up_tries_again_where_the_first_configuration_failed() -> None:
    simulation = simulated(faults={"build": 0.4}, operators=synthetic_operators(2, 12))
    warm_up = Counter(m["operator"] for e in simulation.events if e["kind"] == "batch" and e["slot"] == 0
                      for m in e["measurements"][:12])  # fmt: skip
    assert max(warm_up.values()) > 1


def test_latency_never_rises_and_is_the_weighted_sum_of_the_best() -> None:
    best = [math.inf] * len(OPERATORS)
    before = math.inf
    for event in simulated("dynatune").events:
        if event["kind"] != "batch":
            continue
        for measurement in event["measurements"]:
            if measurement["seconds"] is not None:
                best[measurement["operator"]] = min(best[measurement["operator"]], measurement["seconds"])
        latency = sum(operator.weight * seconds for operator, seconds in zip(OPERATORS, best, strict=True))
        assert event["latency"] == (latency if math.isfinite(latency) else None)
        if event["latency"] is not None:
            assert event["latency"] <= before
            before = event["latency"]


def test_failures_of_every_cause_are_told_and_counted_as_trials_and_duplicates_are_not() -> None:
    simulation = simulated(trials=300, faults=dict.fromkeys(FAULTS, 0.05))
    causes = Counter(measurement["cause"] for measurement in simulation.measurements)
    assert set(causes) == {"", "duplicate", *FAULTS}
    last = simulation.events[-1]
    assert last["trials"] == causes.total() - causes["duplicate"]
    assert last["failures"] == causes.total() - causes["duplicate"] - causes[""]
    assert last["report"]["search"]["duplicates"] == causes["duplicate"]
    assert last["reason"] == "trials"


def test_no_program_is_measured_twice() -> None:
    programs = [(m["operator"], m["identity"]) for m in simulated("autotvm", trials=300).measurements
                if m["identity"] and m["cause"] != "duplicate"]  # fmt: skip
    assert len(set(programs)) == len(programs)


def test_the_budget_of_seconds_ends_the_run_after_the_batch_in_flight() -> None:
    simulation = simulated(budget=Budget(seconds=20.0))
    batches = [event for event in simulation.events if event["kind"] == "batch" and event["measurements"]]
    assert simulation.events[-1]["reason"] == "seconds"
    assert batches[-2]["clock"] < 20.0 <= batches[-1]["clock"]


def test_the_budget_of_trials_ends_the_run_with_the_last_of_them() -> None:
    simulation = simulated(trials=50)
    assert simulation.events[-1]["reason"] == "trials"
    assert simulation.events[-1]["trials"] == 50
    assert simulated(trials=4).events[-1]["trials"] == 4, "in the warm-up too"


def test_a_slot_measures_what_it_measures_and_not_the_warm_up() -> None:
    books = Books(OPERATORS[:2], {}, SimulatedClock())

    def measure(operator: int, *choices: int) -> None:
        asked = [Candidate(operator, Configuration(0, (choice,)), "explorer") for choice in choices]
        books.observe([Outcome(one, one.configuration, repr(one), 1e-3) for one in asked])

    measure(0, 1, 2)
    books.begin()
    measure(0, 3, 4, 5)
    measure(1, 1)  # a twin's best
    books.slot(0, 1.0, {})
    books.slot(0, 1.0, {})  # in which nothing was left to measure
    assert [books.progress(operator, False).measured for operator in (0, 1)] == [3, 0]


def test_what_was_proposed_and_not_measured_counts_from_the_best_on() -> None:
    books = Books(OPERATORS[:2], {}, SimulatedClock())

    def came(choice: int, seconds: float | None, cause: str = "", round: int = 0) -> None:
        asked = Candidate(0, Configuration(0, (choice,)), "explorer", round)
        books.observe([Outcome(asked, asked.configuration, str(choice), seconds, cause=cause)])

    told = []
    for choice, outcome in enumerate(
        [(2e-3,), (None, "duplicate"), (None, "large"), (3e-3,), (None, "run"), (1e-3,), (None, "duplicate"), (1e-3,)]
    ):
        came(choice, *outcome)
        told.append(books.progress(0, False).unbuilt)
    assert told == [0, 1, 2, 2, 2, 0, 1, 1]
    assert books.progress(1, False).unbuilt == 0


def test_a_target_latency_ends_the_run() -> None:
    long = simulated(trials=200)
    middle = next(e["latency"] for e in long.events if e["kind"] == "batch" and e["trials"] > 100)
    simulation = simulated(budget=Budget(target_latency=middle))
    assert simulation.events[-1]["reason"] == "target"
    assert simulation.events[-1]["latency"] <= middle
    assert simulation.events[-1]["trials"] <= 200


def test_a_run_ends_when_the_space_is_exhausted() -> None:
    operators = only("pool", "copy")
    simulation = simulated(budget=Budget(seconds=1e6), operators=operators)
    assert simulation.events[-1]["reason"] == "exhausted"
    asked = Counter(candidate.operator for candidate in simulation.asked)
    assert all(asked[operator.index] <= operator.size for operator in operators)


def test_an_operator_is_finished_after_as_many_slots_as_its_method_gives() -> None:
    """Of more trials than that takes; the warm-up is no slot."""
    chosen = method("round_robin", {**WALK, "rhythm.slots": "3"})
    simulation = simulated(chosen=chosen, trials=10_000, operators=only("conv"))
    slots = Counter(event["operator"] for event in simulation.events if event["kind"] == "slot")
    assert dict(slots) == dict.fromkeys(range(len(only("conv"))), 3)
    assert simulation.events[-1]["reason"] == "exhausted"
    with pytest.raises(IllegalMethod, match="slots 0 of an operator start at 1"):
        method("round_robin", {"rhythm.slots": "0"})


@pytest.mark.parametrize(("word", "reason"), [("pause", "paused"), ("stop", "stopped")])
@pytest.mark.parametrize("after", [0, 1, 4])
def test_a_word_of_the_user_is_honoured_after_the_batch_in_flight(word: str, reason: str, after: int) -> None:
    simulation = simulated(wish=Wish(word, after))
    told = [event for event in simulation.events if event["kind"] == "batch" and event["measurements"]]
    assert simulation.events[-1]["reason"] == reason
    assert len(told) == after
    assert "checkpoint" in simulation.events[-2]


def test_every_measurement_told_was_asked_and_in_order() -> None:
    simulation = simulated("dynatune")
    told = [(m["operator"], m.get("asked", m["choices"])) for m in simulation.measurements]
    assert told == [(c.operator, list(c.configuration.choices)) for c in simulation.asked]


def test_a_plan_spans_several_batches_when_slots_are_by_time() -> None:
    chosen = method("dynatune-paper", WALK)
    simulation = simulated(chosen=chosen, budget=Budget(seconds=300.0), operators=only("conv"))
    slots = [event for event in simulation.events if event["kind"] == "slot"]
    long = [slot for slot in slots if slot["trials"]]
    assert any(slot["trials"] > chosen.rhythm.plan for slot in long)


class Kept(SyntheticLandscape):
    """Whose fourth batch is held up for a minute, by others' work or, as a mutation, by the operator's own."""

    batches, category = 0, "wait"

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        self.batches += 1
        if self.batches == 4:
            self.charge(self.category, 60.0)
        return super().measure(candidates, incumbents)


class Slow(Kept):
    category = "measure"


def slots(of: type[SyntheticLandscape]) -> list[Event]:
    run = simulated("auto", trials=400, landscape=lambda clock: of(3, OPERATORS, clock))
    return [event for event in run.events if event["kind"] == "slot"]


def test_what_a_slot_waited_for_others_changes_no_decision(tmp_path: Path) -> None:
    calm, held = slots(SyntheticLandscape), slots(Kept)
    assert [slot["operator"] for slot in held] == [slot["operator"] for slot in calm]
    (waited,) = [slot for slot in held if "waited" in slot["decision"]]
    assert waited["decision"]["waited"] == 60
    history = kept(tmp_path, [encode(slot) for slot in held])
    own = [seconds for _, seconds, *_ in history.slots]
    assert own == pytest.approx([slot["ended"] - slot["began"] for slot in calm])


@pytest.mark.mutation
def test_mutation_a_wait_that_counts_as_the_operators_own_time_is_noticed() -> None:
    calm, slow = slots(SyntheticLandscape), slots(Slow)
    assert [slot["operator"] for slot in slow] != [slot["operator"] for slot in calm]
