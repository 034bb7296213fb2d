"""A run whose operators learn from each other goes on as if it had never stopped."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS, Wish, kept, simulated
from tests.pipeline.test_resume import sequence
from workers.engine import fitted_model, proposer
from workers.engine.methods import method
from workers.engine.scheduler import RoundRobin
from workers.engine.space import Operator
from workers.messages.causes import UNBUILT
from workers.pipeline.searches import Searches

TRIALS = 200
WALK = {"chains": 16, "steps": 20}
# Small plans and few fits: a checkpoint mostly falls between two fits.
NUMBERS: dict[str, Any] = {"search": {"transfer": 128, "refit": 0.5}, "rhythm": {"plan": 4}, "explorer": WALK}
LEARNING = replace(method("round_robin"), parameters=NUMBERS)
ALONE = replace(LEARNING, parameters={**NUMBERS, "search": {"refit": 0.5}})


@pytest.fixture(autouse=True)
def _everybody_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators of this landscape are alike in shape only: let them learn from each other all the same."""
    monkeypatch.setattr(fitted_model, "AGREEMENT", -1.0)


@cache
def unbroken() -> list[Any]:
    """What the run that never stops measures."""
    return sequence(simulated(trials=TRIALS, chosen=LEARNING).measurements)


def in_two(path: Path, pause_after: int) -> list[dict[str, Any]]:
    first = simulated(trials=TRIALS, chosen=LEARNING, wish=Wish("pause", pause_after))
    second = simulated(trials=TRIALS, chosen=LEARNING, history=kept(path, first.lines))
    return first.measurements + second.measurements


@pytest.mark.parametrize("pause_after", [27, 38])
def test_paused_and_resumed_borrows_the_same_points(tmp_path: Path, pause_after: int) -> None:
    assert sequence(in_two(tmp_path, pause_after)) == unbroken()
    assert unbroken() != sequence(simulated(trials=TRIALS, chosen=ALONE).measurements)


TWINS: tuple[Operator, ...] = (OPERATORS[0], replace(OPERATORS[1], sketches=OPERATORS[0].sketches))
"""The landscape's operators 0 and 1 with the same knobs."""
BORROWING = replace(ALONE, parameters={**NUMBERS, "search": {"refit": 0.5, "twins": True}})


def test_twins_try_the_best_of_another_beside_its_plan_and_after_a_pause_too(tmp_path: Path) -> None:
    whole = simulated(trials=TRIALS, chosen=BORROWING, operators=TWINS)
    lent = [m for m in whole.measurements if m["origin"] == "twin"]
    assert {m["operator"] for m in lent} == {0, 1}
    first = simulated(trials=TRIALS, chosen=BORROWING, operators=TWINS, wish=Wish("pause", 27))
    second = simulated(trials=TRIALS, chosen=BORROWING, operators=TWINS, history=kept(tmp_path, first.lines))
    assert sequence(first.measurements + second.measurements) == sequence(whole.measurements)


def test_a_slot_has_tried_what_it_tried_of_its_operator() -> None:
    run = simulated(trials=TRIALS, chosen=BORROWING, operators=TWINS)
    for slot in (event for event in run.events if event["kind"] == "slot"):
        batches = [event for event in run.events if event["kind"] == "batch" and event["slot"] == slot["slot"]]
        own = [m for batch in batches for m in batch["measurements"] if m["operator"] == slot["operator"]]
        assert slot["trials"] == len([m for m in own if m["round"] == 0 and m["cause"] not in UNBUILT])


def test_what_twins_lend_keeps_to_the_budget_of_trials() -> None:
    ends = {n: simulated(trials=n, chosen=BORROWING, operators=TWINS).events[-1]["trials"] for n in range(20, 45)}
    assert ends == {n: n for n in ends}


def test_twins_do_not_outnumber_the_plan_that_they_ride_along_with() -> None:
    """Of many operators with the same knobs all would try one's new best at once, in a slot that is another's."""
    many = tuple(replace(OPERATORS[0], index=index, name=f"conv{index}", key=f"conv-{index}") for index in range(20))
    run = simulated(trials=TRIALS, chosen=BORROWING, operators=many)
    batches = [event["measurements"] for event in run.events if event["kind"] == "batch" and event.get("slot")]
    lent = [sum(one["origin"] == "twin" for one in batch) for batch in batches]
    assert max(lent) == 4
    assert all(twins <= len(batch) - twins for twins, batch in zip(lent, batches, strict=True))


def test_a_scheduler_hears_what_another_operators_slot_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    """A belief behind its curve would promise what has come already. Here everybody has one try beside every plan."""
    monkeypatch.setattr(Searches, "borrowed", lambda own, all_, most: [c for i in all_ for c in own.propose(i, 1)])
    heard: set[tuple[int, float]] = set()
    monkeypatch.setattr(RoundRobin, "observe", lambda self, one: heard.add((one.operator.index, one.best)))
    best, before = dict[int, float](), dict[int, float]()
    brought = set[tuple[int, float]]()
    for event in simulated(trials=TRIALS, chosen=ALONE).events:
        for one in event.get("measurements", ()):
            best[one["operator"]] = min(best.get(one["operator"], math.inf), one["seconds"] or math.inf)
        if event["kind"] == "slot":
            brought |= {(o, best[o]) for o, then in before.items() if o != event["operator"] and best[o] < then}
            before = {o: best[o] for o in (*before, event["operator"])}
    assert brought
    assert brought <= heard


@pytest.mark.mutation
def test_a_checkpoint_that_forgets_its_loans_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = unbroken()
    restore = proposer.GuidedProposer.restore

    def forgetful(self: proposer.GuidedProposer, state: dict[str, Any]) -> None:
        restore(self, {**state, "loans": [[] for _ in state["loans"]]})

    monkeypatch.setattr(proposer.GuidedProposer, "restore", forgetful)
    assert any(sequence(in_two(tmp_path / str(n), n)) != whole for n in (27, 32, 38))
