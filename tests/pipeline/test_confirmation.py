"""Rounds in a run: what is believed counts everywhere, and a resumed run is the run that never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.simulated_run import OPERATORS, WALK, Simulation, Wish, kept, simulated
from workers.engine.evaluator.estimate import TURNS
from workers.engine.methods import Method, method
from workers.engine.ports import KNOWN, Candidate, Decision, Outcome, Progress
from workers.engine.scheduler.dynatune import DynaTune
from workers.engine.space import Configuration
from workers.landscapes import SimulatedClock, SyntheticLandscape, synthetic_operators
from workers.messages.orders import best_of, latest
from workers.messages.spec import Budget
from workers.pipeline import last_turn as turns
from workers.pipeline.books import Books

TRIALS = 240
SMALL = tuple(
    replace(operator, index=index)
    for index, operator in enumerate(o for o in synthetic_operators(1, 10) if o.name.startswith(("pool", "copy")))
)
"""Operators whose spaces a run comes to the end of."""
NAMED = [{"index": operator.index, "key": operator.key} for operator in OPERATORS]


def adatune(share: float = 1.0) -> Method:
    """A preset's parts, with more rounds than a preset gives."""
    search = {"confirm": share, "contextual": True, "acquisition": "expected_improvement"}
    chosen = replace(method("round_robin"), cost_model="random_forest", evaluator="adaptive")
    return replace(chosen, parameters={"search": search, "explorer": {"chains": 32, "steps": 40}})


def played(**fields: Any) -> Simulation:
    return simulated(trials=TRIALS, chosen=adatune(), **fields)


def test_the_latency_told_is_of_the_latest_figures_and_the_artifact_is_made_of_the_same() -> None:
    run = played()
    assert sum(m["round"] > 0 for m in run.measurements) >= 4
    best = best_of(run.measurements, NAMED)
    told = sum(operator.weight * best[str(operator.index)]["seconds"] for operator in OPERATORS)
    assert run.events[-1]["latency"] == pytest.approx(told)


def test_a_round_is_told_side_by_side_with_its_rivals_and_once() -> None:
    found = played().measurements
    again = [place for place, m in enumerate(found) if m["round"] > 0]
    assert all(second == first + 1 for first, second in zip(again[::2], again[1::2], strict=True))
    rows = [(m["operator"], m["sketch"], *m.get("asked", m["choices"]), m["round"]) for m in found]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("pause_after", [5, 12])
def test_paused_and_resumed_measures_what_the_whole_run_measures(tmp_path: Path, pause_after: int) -> None:
    whole, first = played(), played(wish=Wish("pause", pause_after))
    second = played(history=kept(tmp_path, first.lines))

    def sequence(found: list[dict[str, Any]]) -> list[Any]:
        return [(m["operator"], m["choices"], m["round"], m["seconds"]) for m in found]

    assert sequence(first.measurements + second.measurements) == sequence(whole.measurements)
    assert second.report["search"] == whole.report["search"]
    assert second.events[-1]["latency"] == whole.events[-1]["latency"]


def test_the_report_tells_how_much_was_left_to_chance() -> None:
    search = played().report["search"]
    assert 0 < search["chance"] < search["steered"]
    assert search["confirm"] > 0


def test_a_curve_was_never_below_what_is_true_now() -> None:
    books = Books(OPERATORS[:1], {}, SimulatedClock())
    told = [(1, 0, 9.0), (2, 0, 5.0), (3, 0, 4.0), (4, 0, 6.0), (3, 1, 5.5), (2, 1, 5.2)]
    for number, at, seconds in told:
        candidate = Candidate(0, Configuration(0, (number,)), "explorer", at)
        books.observe([Outcome(candidate, candidate.configuration, str(number), seconds)])
    assert books.best == [5.2]
    assert books.curves == [[9.0, 5.2, 5.2, 5.2]]
    assert (books.trials, books.failures) == (6, 0)


SECONDS = 60.0


class Lucky(SyntheticLandscape):
    """A first figure is up to a tenth too low; later ones are right."""

    def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
        found = super().answer(candidate, incumbent)
        if found.seconds is None:
            return found
        true = self.seconds(candidate.operator, found.configuration)
        key = (candidate.operator, *found.configuration.choices)
        return replace(found, seconds=true if candidate.round else true * (1 - 0.1 * self._draw("luck", *key)))


@pytest.fixture(autouse=True)
def long_last_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A synthetic plan takes some seconds, as long as the last turn of six operators."""
    monkeypatch.setattr(turns, "LAST", 3.0)
    monkeypatch.setattr(turns, "AT_ONCE", 4)


def last_turn(last: float = 0.2, **fields: Any) -> Simulation:
    chosen = method("auto", {**WALK, "rhythm.last": str(last)})
    return simulated(chosen=chosen, budget=fields.pop("budget", Budget(seconds=SECONDS)), **fields)


def lucky(clock: SimulatedClock) -> Lucky:
    return Lucky(3, OPERATORS, clock, {})


def flattery(run: Simulation) -> float:
    """By how much the network is slower than what the run says in the end."""
    landscape, best = lucky(SimulatedClock()), best_of(run.measurements, NAMED)
    true = 0.0
    for operator in OPERATORS:
        found = best[str(operator.index)]
        configuration = Configuration(found["sketch"], tuple(found["choices"]))
        true += operator.weight * landscape.seconds(operator.index, configuration)
    return true / float(run.events[-1]["latency"]) - 1


def test_a_run_ends_with_figures_that_were_measured_twice_and_within_its_seconds() -> None:
    run = last_turn(landscape=lucky)
    figures = latest(run.measurements)
    for operator in OPERATORS:
        best = min((m for m in figures if m["operator"] == operator.index), key=lambda m: m["seconds"])
        assert best["round"] > 0
    assert abs(flattery(run)) < 1e-9
    ended = run.events[-1]
    assert (ended["reason"], ended["clock"] < SECONDS) == ("seconds", True)
    (phase,) = (event for event in run.events if event.get("name") == "confirming")
    assert 0.7 * SECONDS < phase["clock"] < 0.9 * SECONDS
    assert ended["report"]["search"]["confirm"] == sum(m["round"] > 0 for m in run.measurements) > 0
    slots = [
        event["slot"]
        for event in run.events
        if event["kind"] == "batch" and any(m["round"] for m in event["measurements"])
    ]
    assert set(slots) == {0}


@pytest.mark.mutation
def test_without_a_last_turn_the_end_flatters_itself() -> None:
    run = last_turn(last=0.0, landscape=lucky)
    assert flattery(run) > 0.03
    assert "confirming" not in [event.get("name") for event in run.events]


def test_a_best_is_measured_beside_its_rivals_and_once() -> None:
    books = Books(OPERATORS[:1], {}, SimulatedClock())

    def told(number: int, seconds: float | None, at: int = 0) -> None:
        candidate = Candidate(0, Configuration(0, (number,)), "explorer", at)
        cause = "" if seconds else "crash"
        books.observe([Outcome(candidate, candidate.configuration, str(number), seconds, cause=cause)])

    def doubted() -> list[tuple[int, int]]:
        return [(one.configuration.choices[0], one.round) for one in books.doubted(0)]

    assert doubted() == []
    for number, seconds in enumerate((1.05, 1.2, 1.0, 1.09, 1.08, None)):
        told(number, seconds)
    assert doubted() == [(2, 1), (0, 1), (4, 1)], "the third rival has to wait, the slow one is none"
    told(2, 1.11, at=1)
    told(0, 1.1, at=1)
    assert doubted() == [(4, 1), (3, 1), (0, 2)]
    told(4, None, at=1)
    assert doubted() == [(3, 1), (0, 2), (2, 2)], "what fails the second time is not asked again"
    for number in (3, 0, 2):
        told(number, 1.2, at=9)
    assert doubted() == []


@pytest.mark.parametrize(("fell", "first"), [(1.3, 0), (1.05, 1)])
def test_what_fell_far_when_it_was_asked_again_comes_before_what_may_be_luck(fell: float, first: int) -> None:
    """What was told to be nearly as fast as the fallen one counts no longer, and of many operators would never be asked: the
    last turn is over before all were once."""
    books = Books(OPERATORS[:2], {}, SimulatedClock())
    for operator, number, at, seconds in ((0, 1, 0, 1.0), (0, 2, 0, 0.99), (1, 1, 0, 1.0), (0, 2, 1, fell)):
        candidate = Candidate(operator, Configuration(0, (number,)), "explorer", at)
        own = seconds / OPERATORS[operator].weight
        books.observe([Outcome(candidate, candidate.configuration, str(number), own)])
    assert books.best[0] * OPERATORS[0].weight == pytest.approx(fell)
    assert books.by_doubt()[0] == first
    assert [one.configuration.choices[0] for one in books.doubted(0)] == [1, 2][: 2 if fell < 1.1 else 1]


def test_no_round_passes_over_the_best() -> None:
    """Faster ones were told before it, and count no longer; nor would it, if others were asked and it was not."""
    books = Books(OPERATORS[:1], {}, SimulatedClock())
    told = [
        *((number, 0, 1 + number / 100) for number in range(6)),
        *((number, 1, 1.1) for number in range(3)),
        (6, 0, 1.06),
    ]
    for number, at, seconds in told:
        candidate = Candidate(0, Configuration(0, (number,)), "explorer", at)
        books.observe([Outcome(candidate, candidate.configuration, str(number), seconds)])
    assert books.best == [1.06]
    assert [one.configuration.choices[0] for one in books.doubted(0)] == [3, 4, 6]


def test_another_round_takes_as_long_as_turns_do() -> None:
    """What an earlier run found was timed in turns already."""
    books = Books(OPERATORS[:1], {}, SimulatedClock())
    for number, origin in enumerate(("explorer", KNOWN)):
        candidate = Candidate(0, Configuration(0, (number,)), origin)
        found = Outcome(candidate, candidate.configuration, str(number), 1.0, build_seconds=0.5, measure_seconds=0.25)
        books.observe([found])
    again = [books.seconds_again(Candidate(0, Configuration(0, (number,)), "confirm", 1)) for number in range(2)]
    assert again == [0.5 + TURNS * 0.25, 0.5 + 0.25]


def test_a_curve_keeps_what_was_won_after_a_correction() -> None:
    books = Books(OPERATORS[:1], {}, SimulatedClock())
    for number, at, seconds in [(1, 0, 1.0), (1, 1, 2.0), (2, 0, 1.5), (2, 1, 1.6)]:
        candidate = Candidate(0, Configuration(0, (number,)), "explorer", at)
        books.observe([Outcome(candidate, candidate.configuration, str(number), seconds)])
    assert books.curves == [[2.0, 1.6]]


def in_last_turn(word: str) -> Simulation:
    """A run of which the user wants that after the first batch of its last turn."""
    whole = last_turn()
    began = next(i for i, event in enumerate(whole.events) if event.get("name") == "confirming")
    batches = sum(event["kind"] == "batch" for event in whole.events[:began])
    return last_turn(wish=Wish(word, batches + 1))


def test_a_run_paused_in_its_last_turn_goes_on_with_it(tmp_path: Path) -> None:
    whole, first = last_turn(), in_last_turn("pause")
    assert first.events[-1]["reason"] == "paused"
    second = last_turn(history=kept(tmp_path, first.lines))
    told = [[(m["operator"], m["choices"], m["round"]) for m in run.measurements] for run in (whole, first, second)]
    assert told[0] == told[1] + told[2]
    assert second.events[-1]["latency"] == whole.events[-1]["latency"]


@pytest.mark.parametrize("fewer", [0, 1, 3])
def test_a_last_turn_stays_within_the_trials(fewer: int) -> None:
    trials = last_turn().events[-1]["trials"] - fewer
    run = last_turn(budget=Budget(seconds=SECONDS, trials=trials))
    assert (run.events[-1]["reason"], run.events[-1]["trials"]) == ("seconds", trials)
    assert sum(measurement["round"] > 0 for measurement in run.measurements) >= 3


@pytest.mark.parametrize(
    ("reason", "fields", "turn"),
    [
        ("stopped", {"wish": Wish("stop", 4)}, False),
        ("trials", {"budget": Budget(trials=60)}, False),
        ("target", {"budget": Budget(target_latency=1.0)}, True),
        ("gain", {"budget": Budget(seconds=1e6, min_gain=0.2)}, True),
        ("exhausted", {"budget": Budget(seconds=1e6), "operators": SMALL, "faults": {}}, True),
        ("seconds", {"budget": Budget(seconds=0.5), "faults": {"build": 1.0}}, False),
    ],
)
def test_a_run_that_was_not_cut_off_has_a_last_turn(reason: str, fields: dict[str, Any], turn: bool) -> None:
    run = last_turn(**fields)
    assert run.events[-1]["reason"] == reason
    assert any(m["round"] for m in run.measurements) is turn
    assert ("confirming" in [event.get("name") for event in run.events]) is turn


@pytest.fixture
def wanted() -> float:
    """A latency, in s, that a run comes to by luck before it has it."""
    whole = last_turn(landscape=lucky, budget=Budget(seconds=4 * SECONDS))
    return 1.02 * float(whole.events[-1]["latency"])


def by_luck(wanted: float, trials: int | None = None, **fields: Any) -> Simulation:
    """A run that asks for this latency, and goes on where it was luck."""
    budget = Budget(seconds=40 * SECONDS, trials=trials, target_latency=wanted)
    return last_turn(landscape=lucky, budget=budget, **fields)


@pytest.mark.parametrize("last", [0.2, pytest.param(0.0, marks=pytest.mark.mutation)])
def test_a_latency_that_was_asked_for_is_reached_by_more_than_luck(last: float, wanted: float) -> None:
    run = by_luck(wanted, last=last)
    assert run.events[-1]["reason"] == "target"
    true = (1 + flattery(run)) * run.events[-1]["latency"]
    assert (true <= wanted) is (last > 0)
    phases = [event["name"] for event in run.events if event["kind"] == "phase"]
    assert (phases.count("tuning") > 1) is (last > 0), "slots follow where it was luck"
    spent = sum(seconds for phase in run.report["phases"].values() for seconds in phase.values())
    assert spent == pytest.approx(run.events[-1]["clock"], abs=1e-3)


def test_a_run_that_came_to_its_latency_by_luck_goes_on_where_it_was_paused(tmp_path: Path, wanted: float) -> None:
    """In the last turn, and in the slots after it, of which the scheduler has heard what that measured."""
    whole = by_luck(wanted)
    names = [event.get("name") for event in whole.events]
    again = [place for place, name in enumerate(names) if name == "tuning"][1]
    begun = names.index("confirming")
    for place in (begun, again):
        batches = sum(event["kind"] == "batch" for event in whole.events[:place]) + 1
        first = by_luck(wanted, wish=Wish("pause", batches))
        assert first.events[-1]["reason"] == "paused"
        second = by_luck(wanted, history=kept(tmp_path / str(place), first.lines))
        told = [[(m["operator"], m["choices"], m["round"]) for m in run.measurements] for run in (whole, first, second)]
        assert told[0] == told[1] + told[2]
        assert second.events[-1]["reason"] == "target"


def test_limits_hold_while_a_latency_that_was_reached_is_measured_again(wanted: float) -> None:
    whole = by_luck(wanted)
    begun = next(place for place, event in enumerate(whole.events) if event.get("name") == "confirming")
    trials = max(event["trials"] for event in whole.events[:begun] if event["kind"] == "batch")
    short = by_luck(wanted, trials + 1)
    assert short.events[-1]["trials"] <= trials + 6, "a batch is not taken apart"
    assert sum(m["round"] > 0 for m in short.measurements) > 0


def test_operators_that_get_no_slots_have_no_last_turn() -> None:
    run = last_turn(tuned=[0, 1])
    assert {m["operator"] for m in run.measurements if m["round"]} <= {0, 1}
    assert any(m["round"] for m in run.measurements)


def test_slots_by_time_leave_the_last_turn_no_more_than_its_share() -> None:
    chosen = method("auto", {**WALK, "rhythm.last": "0.1", "rhythm.slot_seconds": "100"})
    run = simulated(chosen=chosen, budget=Budget(seconds=SECONDS))
    assert any(event["kind"] == "slot" for event in run.events)
    (phase,) = (event for event in run.events if event.get("name") == "confirming")
    assert phase["clock"] >= 0.9 * SECONDS


def test_the_last_turn_ends_with_the_trials_that_were_asked_for() -> None:
    free = last_turn(budget=Budget(seconds=1e6, min_gain=0.2))
    before = sum(m["round"] == 0 and m["cause"] != "duplicate" for m in free.measurements)
    short = last_turn(budget=Budget(seconds=1e6, min_gain=0.2, trials=before + 1))
    assert short.events[-1]["reason"] == "gain"
    rounds = [sum(m["round"] > 0 for m in run.measurements) for run in (free, short)]
    assert 0 < rounds[1] <= 6 < rounds[0], "a batch is not taken apart"


def test_an_operator_of_which_nothing_runs_costs_the_others_nothing() -> None:
    class Without(SyntheticLandscape):
        def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
            found = super().answer(candidate, incumbent)
            return replace(found, seconds=None, cause="build") if candidate.operator == 0 else found

    budget = Budget(seconds=10 * SECONDS)
    run = last_turn(landscape=lambda clock: Without(7, OPERATORS, clock, {}), budget=budget)
    assert run.events[-1]["latency"] is None
    assert 0 not in {m["operator"] for m in run.measurements if m["round"]} != set()


def test_a_run_stopped_in_its_last_turn_ends_with_what_is_true_so_far() -> None:
    run = in_last_turn("stop")
    assert run.events[-1]["reason"] == "stopped"
    assert any(m["round"] for m in run.measurements)
    best = best_of(run.measurements, NAMED)
    told = sum(operator.weight * best[str(operator.index)]["seconds"] for operator in OPERATORS)
    assert run.events[-1]["latency"] == pytest.approx(told)


@pytest.mark.parametrize(("seconds", "anew"), [(2 * SECONDS, True), (SECONDS, False)], ids=["more time", "no more"])
def test_a_run_that_goes_on_after_its_last_turn_believes_what_that_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, anew: bool
) -> None:
    first, told = last_turn(), list[int | None]()
    observe, choose = DynaTune.observe, DynaTune.choose

    def observing(self: DynaTune, progress: Progress) -> None:
        told.append(progress.operator.index)
        observe(self, progress)

    def choosing(self: DynaTune, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        told.append(None)
        return choose(self, progress, slot_seconds)

    monkeypatch.setattr(DynaTune, "observe", observing)
    monkeypatch.setattr(DynaTune, "choose", choosing)
    last_turn(history=kept(tmp_path, first.lines), budget=Budget(seconds=seconds))
    slots = {event["operator"] for event in first.events if event["kind"] == "slot"}
    again = slots & {m["operator"] for m in first.measurements if m["round"]}
    assert len(again) > 2
    assert set(told[: told.index(None)] if anew else told) == (again if anew else set())


@pytest.mark.parametrize("dear", [1, pytest.param(0, marks=pytest.mark.mutation)])
def test_the_last_turn_begins_nothing_that_would_not_end_in_its_time(
    dear: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dear(SyntheticLandscape):
        """Where a timing takes ten seconds."""

        def answer(self, candidate: Candidate, incumbent: float | None) -> Outcome:
            return replace(super().answer(candidate, incumbent), measure_seconds=10.0)

    taken = Books.seconds_again
    monkeypatch.setattr(Books, "seconds_again", lambda books, candidate: dear * taken(books, candidate))
    run = last_turn(landscape=lambda clock: Dear(3, OPERATORS, clock, {}), budget=Budget(seconds=10 * SECONDS))
    assert (run.events[-1]["clock"] <= 10 * SECONDS) is bool(dear)
