"""A run that stopped and went on is the run that never stopped, as far as its last checkpoint reaches."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS, Simulation, Wish, kept, measurements, simulated
from workers.engine.belief import Belief
from workers.engine.methods import method
from workers.engine.proposer import GuidedProposer
from workers.landscapes import synthetic_operators
from workers.messages.events import decode
from workers.pipeline.loop import TuningLoop
from workers.supervision.directory import History

METHODS = ("dynatune", "round_robin", "autotvm", "random")
TRIALS = 240


def sequence(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(m["operator"], m["sketch"], tuple(m["choices"]), m["cause"], m["seconds"]) for m in found]


@cache
def unbroken(name: str) -> Simulation:
    """The run that never stops."""
    return simulated(name, TRIALS)


def in_two(path: Path, name: str, pause_after: int, **fields: Any) -> list[dict[str, Any]]:
    """The measurements of a run that was paused after so many batches and resumed."""
    first = simulated(name, TRIALS, wish=Wish("pause", pause_after), **fields)
    second = simulated(name, TRIALS, history=kept(path, first.lines), **fields)
    return first.measurements + second.measurements


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("pause_after", [1, 5, 12])
def test_paused_and_resumed_measures_what_the_whole_run_measures(tmp_path: Path, name: str, pause_after: int) -> None:
    assert sequence(in_two(tmp_path, name, pause_after)) == sequence(unbroken(name).measurements)


def test_the_clock_and_the_accounts_go_on_where_they_stopped(tmp_path: Path) -> None:
    whole = unbroken("dynatune")
    first = simulated("dynatune", TRIALS, wish=Wish("pause", 6))
    second = simulated("dynatune", TRIALS, history=kept(tmp_path, first.lines))
    assert second.events[-1]["clock"] == pytest.approx(whole.events[-1]["clock"], abs=1e-4)
    assert second.report["slots"] == whole.report["slots"]
    assert second.report["search"] == whole.report["search"]
    assert second.report["timings"] == whole.report["timings"]
    assert second.report["spent"] == pytest.approx(whole.report["spent"], abs=1e-3)
    assert second.report["decided_by_belief"] == whole.report["decided_by_belief"]


def test_the_search_s_parts_are_told_with_what_earlier_attempts_took(tmp_path: Path) -> None:
    first = simulated("dynatune", TRIALS, wish=Wish("pause", 6))
    history = kept(tmp_path, first.lines)
    assert history.checkpoint is not None
    assert history.checkpoint["searched"].keys() == first.report["searched"].keys() >= {"explore", "sample", "fit"}
    history.checkpoint["searched"]["explore"] += 40.0
    second = simulated("dynatune", TRIALS, history=history)
    assert second.report["searched"]["explore"] >= 40.0
    del history.checkpoint["searched"]  # as earlier versions wrote it
    for absent in ("carried", "records"):
        del history.checkpoint["scheduler"][absent]
    assert simulated("dynatune", TRIALS, history=history).report["searched"]["explore"] < 40.0


def test_a_pause_during_the_warm_up_changes_nothing(tmp_path: Path) -> None:
    operators = synthetic_operators(2, 40)
    fields: dict[str, Any] = {"operators": operators, "faults": {"build": 0.4}}
    whole = simulated("round_robin", TRIALS, **fields)
    for pause_after in (1, 2, 3, 4, 5):
        parts = in_two(tmp_path / str(pause_after), "round_robin", pause_after, **fields)
        assert sequence(parts) == sequence(whole.measurements), f"paused after batch {pause_after}"


def test_an_operator_that_never_works_does_not_make_a_resumed_run_another_one(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"faults": {"build": 0.97}}
    whole = simulated("round_robin", TRIALS, **fields)
    assert sequence(in_two(tmp_path, "round_robin", 8, **fields)) == sequence(whole.measurements)


@pytest.mark.parametrize("name", ["dynatune", "random"])
def test_killed_at_any_event_nothing_is_lost_or_measured_twice(tmp_path: Path, name: str) -> None:
    whole = unbroken(name).lines
    for number, end in enumerate(range(1, len(whole), 7)):
        second = simulated(name, TRIALS, history=kept(tmp_path / str(number), whole[:end]))
        first = kept(tmp_path / f"again{number}", whole[:end]).measurements
        found = first + second.measurements
        programs = Counter((m["operator"], m["identity"]) for m in found if m["identity"] and m["cause"] != "duplicate")
        assert max(programs.values()) == 1
        assert second.events[-1]["trials"] == sum(m["cause"] != "duplicate" for m in found)
        best = {
            o.index: min(m["seconds"] for m in found if m["operator"] == o.index and m["seconds"]) for o in OPERATORS
        }
        assert second.events[-1]["latency"] == pytest.approx(sum(o.weight * best[o.index] for o in OPERATORS))


def test_what_a_killed_slot_measured_is_no_other_slot_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It carries the number of the next attempt's first slot, which had no share in it."""
    lines = unbroken("dynatune").lines
    slots = [number for number, line in enumerate(lines) if decode(line)["kind"] == "slot"]
    killed = lines[: slots[3]]  # all of a slot is measured, and it is not told
    second = simulated("dynatune", TRIALS, history=kept(tmp_path / "1", killed)).lines[:-2]
    loops = list[TuningLoop]()
    monkeypatch.setattr(TuningLoop, "run", lambda self: loops.append(self) or "paused")
    simulated("dynatune", TRIALS, history=kept(tmp_path / "2", killed, second))
    told = Counter[int]()
    for event in map(decode, (*killed, *second)):
        if event["kind"] == "slot":
            told[event["operator"]] += event["trials"]
    assert told.total() > 0
    assert {index: count for index, count in enumerate(loops[0]._books._measured) if count} == +told


def test_killed_twice_the_clock_still_counts_every_second(tmp_path: Path) -> None:
    first = unbroken("dynatune").lines[:20]
    second = simulated("dynatune", TRIALS, history=kept(tmp_path / "1", first)).lines[:9]
    third = simulated("dynatune", TRIALS, history=kept(tmp_path / "2", first, second))
    assert sum(third.report["spent"].values()) == pytest.approx(third.events[-1]["clock"], abs=1e-3)


def test_a_resumed_run_tells_of_no_warm_up_that_is_over(tmp_path: Path) -> None:
    first = unbroken("dynatune").lines
    events = [decode(line) for line in first]
    slot = next(place for place, event in enumerate(events) if event["kind"] == "slot")
    assert "warm-up" in [event["name"] for event in events if event["kind"] == "phase"]
    second = simulated("dynatune", TRIALS, history=kept(tmp_path, first[: slot + 1]))
    assert "warm-up" not in [event["name"] for event in second.events if event["kind"] == "phase"]


def test_a_run_killed_behind_its_checkpoint_goes_on_in_its_circle(tmp_path: Path) -> None:
    """Whoever became faster meanwhile: the scheduler hears of slots in their order."""
    lines = simulated("round_robin", TRIALS).lines
    events = [decode(line) for line in lines]
    slots = [place for place, event in enumerate(events) if event["kind"] == "slot"]
    saved = next(place for place in slots if "checkpoint" in events[place])
    behind = [pair for pair in itertools.pairwise(slots) if pair[0] > saved and "checkpoint" not in events[pair[0]]]
    assert behind
    for number, (last, following) in enumerate(behind):
        second = simulated("round_robin", TRIALS, history=kept(tmp_path / str(number), lines[: last + 1]))
        first_slot = next(event for event in second.events if event["kind"] == "slot")
        assert first_slot["operator"] == events[following]["operator"]


MORE = 3 * TRIALS
BELIEVING: dict[str, Any] = {"chosen": method("random", {"scheduler": "dynatune"}), "trials": MORE}
"""Slots by belief, with a search that takes no time."""


@cache
def believing() -> tuple[str, ...]:
    """What a run told that was paused among its slots."""
    return tuple(simulated(**BELIEVING, wish=Wish("pause", 24)).lines)


@pytest.fixture
def lost(tmp_path: Path) -> History:
    """Of that run, whose checkpoint is lost."""
    return replace(kept(tmp_path, believing()), checkpoint=None)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the curves that were fitted."""
    lengths, observe = list[int](), Belief.observe

    def counted(self: Belief, speeds: Any, *given: float) -> None:
        lengths.append(len(speeds))
        observe(self, speeds, *given)

    monkeypatch.setattr(Belief, "observe", counted)
    return lengths


@dataclass
class Later(Wish):
    """`word` once it was asked for the `after`-th time."""

    def __call__(self) -> str:
        self.after -= 1
        return self.word if self.after <= 0 else "continue"


def taken_up(monkeypatch: pytest.MonkeyPatch, history: History, trials: int = MORE) -> TuningLoop:
    """The loop that goes on from there, before its first decision."""
    loops = list[TuningLoop]()
    with monkeypatch.context() as patched:
        patched.setattr(TuningLoop, "run", lambda self: loops.append(self) or "paused")
        simulated(**{**BELIEVING, "trials": trials}, history=history)
    return loops[0]


def test_slots_that_no_checkpoint_knows_are_all_counted_and_fitted_once_an_operator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: History, fits: list[int]
) -> None:
    """Of tens of thousands each was fitted, for longer than a child may be silent."""
    slots = Counter(slot[0] for slot in lost.slots)
    assert len(slots) < 0.5 * slots.total()
    scheduler = taken_up(monkeypatch, lost)._scheduler.state()
    assert len(fits) == len(slots)
    known = kept(tmp_path / "known", believing()).checkpoint["scheduler"]
    assert scheduler["records"] == known["records"]
    assert scheduler["beliefs"].keys() == known["beliefs"].keys() == {str(operator) for operator in slots}
    for operator, belief in scheduler["beliefs"].items():
        assert belief["configurations"] == known["beliefs"][operator]["configurations"]


def test_a_run_that_only_ends_believes_nothing_anew(
    monkeypatch: pytest.MonkeyPatch, lost: History, fits: list[int]
) -> None:
    spent = decode(believing()[-1])["trials"]
    assert taken_up(monkeypatch, lost, spent)._scheduler.state()["records"]["seen"]
    assert not fits


@pytest.mark.parametrize("asked", [1, 3])
def test_a_pause_does_not_wait_for_what_is_believed_and_the_next_attempt_does_without(
    tmp_path: Path, lost: History, fits: list[int], asked: int
) -> None:
    """What was not fitted is when it is first asked for."""
    had = {slot[0] for slot in lost.slots}
    paused = simulated(**BELIEVING, history=lost, wish=Later("pause", asked))
    assert (paused.events[-1]["reason"], paused.measurements) == ("paused", [])
    assert paused.report["slots"] == len(lost.slots)
    assert len(fits) == max(0, asked - 2) < len(had)
    history = kept(tmp_path / "again", believing(), paused.lines)
    assert history.checkpoint["slot"] == len(history.slots)
    again = simulated(**BELIEVING, history=history, wish=Wish("pause", 1))
    first = next(event for event in again.events if event["kind"] == "slot")
    compared = first["decision"]["operators"].keys() & {str(operator) for operator in had}
    assert compared <= again.events[-2]["checkpoint"]["scheduler"]["beliefs"].keys()


def test_many_slots_are_taken_up_in_a_phase_that_ends_when_the_user_wants_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lost: History
) -> None:
    """Nothing is told of a part of the figures, and nothing is lost."""
    told = [f"taking up what {len(lost.slots)} slots found"]

    def resuming(run: Simulation) -> list[str]:
        return [event["text"] for event in run.events if event.get("name") == "resuming"]

    few = simulated(**BELIEVING, history=lost, wish=Wish("pause", 2))
    assert not resuming(few)
    monkeypatch.setattr("workers.pipeline.loop.MANY", len(lost.slots))
    paused = simulated(**BELIEVING, history=lost, wish=Later("pause", 2))
    assert [event["kind"] for event in paused.events] == ["phase"]
    again = replace(kept(tmp_path / "1", believing(), paused.lines), checkpoint=None)
    whole = simulated(**BELIEVING, history=again, wish=Wish("pause", 2))
    assert resuming(paused) == resuming(whole) == told
    assert sequence(whole.measurements) == sequence(few.measurements)


@pytest.mark.mutation
def test_a_checkpoint_without_its_random_state_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sequence(unbroken("round_robin").measurements)
    monkeypatch.setattr("workers.engine.proposer.unpack_generator", lambda rng, packed: None)
    assert sequence(in_two(tmp_path, "round_robin", 5)) != whole


@pytest.mark.mutation
def test_a_checkpoint_that_forgets_the_scheduler_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sequence(unbroken("round_robin").measurements)
    monkeypatch.setattr("workers.engine.scheduler.round_robin.RoundRobin.restore", lambda self, state: None)
    assert sequence(in_two(tmp_path, "round_robin", 5)) != whole


@pytest.mark.mutation
def test_a_resume_that_does_not_remember_programs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sequence(unbroken("random").measurements)
    monkeypatch.setattr("workers.landscapes.landscape.Landscape.remember", lambda self, operator, identity: None)
    assert sequence(in_two(tmp_path, "random", 1)) != whole


@pytest.mark.mutation
def test_a_resume_that_observes_nothing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sequence(unbroken("round_robin").measurements)
    first = simulated("round_robin", TRIALS, wish=Wish("pause", 12))
    history = kept(tmp_path, first.lines)
    observe = GuidedProposer.observe
    left = len(history.measurements)

    def deaf(self: GuidedProposer, outcomes: Any) -> None:
        nonlocal left
        left -= len(outcomes)
        if left < 0:
            observe(self, outcomes)

    monkeypatch.setattr(GuidedProposer, "observe", deaf)
    second = simulated("round_robin", TRIALS, history=history)
    assert sequence(measurements(first.events) + second.measurements) != whole
