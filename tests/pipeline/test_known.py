"""A second run that knows the first: as good at once, by its own measurements, and exact when it is resumed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.simulated_run import OPERATORS, Simulation, Wish, kept, simulated
from tests.pipeline.test_resume import sequence
from workers.engine.history import History
from workers.engine.known import LOOKS, STARTS, Known, known_points, space_of
from workers.engine.methods import method
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.landscapes import SimulatedClock, SyntheticLandscape
from workers.messages.known import points_of, records
from workers.messages.spec import Budget
from workers.pipeline import searches
from workers.pipeline.loop import TuningLoop

SPACES = [space_of(operator.sketches) for operator in OPERATORS]
FIRST = 500
WHOLE = method("dynatune")
"""With walks as long as the preset's, where it counts how good a run is."""


def known_of(run: Simulation) -> dict[int, Known]:
    """What a run leaves, the way its journal does."""
    found = defaultdict(list)
    for measurement in run.measurements:
        found[OPERATORS[measurement["operator"]].key, SPACES[measurement["operator"]]].append(measurement)
    newest = {name: points_of(measurements)[::-1] for name, measurements in found.items()}
    return known_points(records(newest), OPERATORS, SPACES)


@pytest.fixture(scope="module")
def first() -> Simulation:
    return simulated(trials=FIRST, chosen=WHOLE)


@pytest.fixture(scope="module")
def known(first: Simulation) -> dict[int, Known]:
    return known_of(first)


def clock_at(run: Simulation, latency: float) -> float:
    """Tuning time when a run was first as good; inf if never."""
    reached = (e["clock"] for e in run.events if e["kind"] == "batch" and e["latency"] and e["latency"] <= latency)
    return next(reached, float("inf"))


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_a_second_run_is_as_good_as_the_first_in_a_tenth_of_its_time(
    first: Simulation, known: dict[int, Known], seed: int
) -> None:
    """The landscape's noise is of the configuration, so that equal means equal here."""
    end = first.events[-1]
    second = simulated(trials=100, chosen=WHOLE, known=known, seed=seed)
    assert clock_at(second, end["latency"]) < 0.1 * end["clock"]
    alone = simulated(trials=FIRST // 5, chosen=WHOLE, seed=seed)
    assert clock_at(alone, end["latency"]) > 0.1 * end["clock"]


def test_a_second_run_goes_on_where_the_first_ended() -> None:
    first = simulated(trials=200, chosen=WHOLE)
    second = simulated(trials=200, chosen=WHOLE, known=known_of(first), seed=8)
    assert second.events[-1]["latency"] < 0.9 * first.events[-1]["latency"]


def test_every_figure_of_the_second_run_was_measured_in_it(known: dict[int, Known]) -> None:
    second = simulated("dynatune", 150, known=known)
    assert second.events[-1]["trials"] == sum(m["cause"] != "duplicate" for m in second.measurements)
    best = {
        o.index: min(m["seconds"] for m in second.measurements if m["operator"] == o.index and m["seconds"])
        for o in OPERATORS
    }
    assert second.events[-1]["latency"] == pytest.approx(sum(o.weight * best[o.index] for o in OPERATORS))
    batches = [event for event in second.events if event["kind"] == "batch"]
    tried = {m["operator"] for m in batches[0]["measurements"]}
    assert tried == {o.index for o in OPERATORS}, "the warm-up measures every operator, known or not"


def test_known_programs_are_not_measured_again_but_for_the_best(known: dict[int, Known]) -> None:
    second = simulated("dynatune", 300, known=known)
    measured = {(m["operator"], m["identity"]) for m in second.measurements if m["seconds"]}
    for operator, points in known.items():
        assert not {(operator, identity) for identity in points.settled} & measured


@pytest.mark.parametrize("pause_after", [1, 4, 9])
def test_paused_and_resumed_with_the_same_knowledge_is_the_whole_run(
    tmp_path: Path, known: dict[int, Known], pause_after: int
) -> None:
    whole = simulated("dynatune", 200, known=known)
    begun = simulated("dynatune", 200, known=known, wish=Wish("pause", pause_after))
    rest = simulated("dynatune", 200, known=known, history=kept(tmp_path, begun.lines))
    assert sequence(begun.measurements + rest.measurements) == sequence(whole.measurements)


class Busy(SyntheticLandscape):
    """Programs are timed twice too slow until `batches` were measured."""

    def __init__(self, clock: SimulatedClock, batches: int = 1) -> None:
        super().__init__(3, OPERATORS, clock)
        self._left = batches

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        times = 2.0 if self._left > 0 else 1.0
        self._left -= 1
        return [
            replace(one, seconds=one.seconds and times * one.seconds) for one in super().measure(candidates, incumbents)
        ]


def repeated(run: Simulation) -> list[tuple[int, int]]:
    """(operator, slot) of what was measured once more."""
    batches = (event for event in run.events if event["kind"] == "batch")
    return [(m["operator"], batch["slot"]) for batch in batches for m in batch["measurements"] if m["round"] > 0]


def test_what_a_bad_moment_made_slow_is_measured_once_more_before_the_first_slot(
    first: Simulation, known: dict[int, Known]
) -> None:
    busy = simulated("dynatune", 30, known=known, landscape=Busy)
    assert repeated(busy) == [(operator.index, 0) for operator in OPERATORS]
    warm = next(event for event in busy.events if event["kind"] == "phase" and event["name"] == "tuning")
    assert clock_at(busy, 1.01 * first.events[-1]["latency"]) <= warm["clock"]
    assert repeated(simulated("dynatune", 30, known=known)) == []


@pytest.mark.mutation
def test_without_the_second_look_a_bad_moment_is_noticed(
    first: Simulation, known: dict[int, Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "FALLEN", float("inf"))
    busy = simulated("dynatune", 30, known=known, landscape=Busy)
    warm = next(event for event in busy.events if event["kind"] == "phase" and event["name"] == "tuning")
    assert clock_at(busy, 1.01 * first.events[-1]["latency"]) > warm["clock"]


def test_a_machine_that_stays_slow_is_asked_twice_more_only(known: dict[int, Known]) -> None:
    busy = simulated("dynatune", 60, known=known, landscape=lambda clock: Busy(clock, 1000))
    assert repeated(busy) == [(operator.index, 0) for _ in range(LOOKS) for operator in OPERATORS]


def test_paused_between_both_looks_and_resumed_is_the_whole_run(tmp_path: Path, known: dict[int, Known]) -> None:
    whole = simulated("dynatune", 60, known=known, landscape=Busy)
    begun = simulated("dynatune", 60, known=known, landscape=Busy, wish=Wish("pause", 1))
    assert not repeated(begun)
    rest = simulated(
        "dynatune", 60, known=known, history=kept(tmp_path, begun.lines), landscape=lambda clock: Busy(clock, 0)
    )
    assert sequence(begun.measurements + rest.measurements) == sequence(whole.measurements)


@pytest.fixture(scope="module")
def close(known: dict[int, Known]) -> dict[int, Known]:
    """As if all starts of an operator but the last were some per cent apart."""

    def told(points: Known) -> Known:
        near = {start: (1 + 0.02 * turn) * points.best for turn, start in enumerate(points.starts[:-1])}
        return Known(tuple(replace(p, seconds=near.get(p.configuration, p.seconds)) for p in points.points))

    return {index: told(points) for index, points in known.items()}


def before_slots(run: Simulation) -> set[tuple[int, Configuration]]:
    """(operator, configuration) asked for in the warm-up."""
    batches = [event for event in run.events if event["kind"] == "batch" and event["slot"] == 0]
    count = sum(len(batch["measurements"]) for batch in batches)
    return {(one.operator, one.configuration) for one in run.asked[:count]}


def starts(known: Mapping[int, Known], most: int = 3) -> set[tuple[int, Configuration]]:
    """(operator, configuration) of the fastest of each."""
    return {(index, start) for index, points in known.items() for start in points.starts[:most]}


def largest(known: dict[int, Known]) -> dict[int, Known]:
    """The fewest that take nine tenths of the network's time, by what is known."""
    times = {index: OPERATORS[index].weight * known[index].best for index in known}
    order = sorted(times, key=times.__getitem__, reverse=True)
    sums = list(accumulate(times[index] for index in order))
    return {index: known[index] for index, upto in zip(order, [0.0, *sums], strict=False) if upto < 0.9 * sums[-1]}


def test_what_may_be_the_best_of_the_largest_operators_is_measured_before_the_first_slot(
    close: dict[int, Known],
) -> None:
    assert 1 < len(largest(close)) < len(close)
    assert before_slots(simulated("dynatune", 100, known=close)) == starts(largest(close)) | starts(close, 1)


def test_contenders_are_measured_too_where_the_latency_that_was_asked_for_was_luck(
    close: dict[int, Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seems to be there once, before they were asked for, and is not when the best are timed once more."""
    asked = count()
    monkeypatch.setattr(TuningLoop, "_arrived", lambda self: self._books.trials > 0 and next(asked) == 0)
    run = simulated("auto", 100, known=close)
    assert next(asked) > 1
    assert starts(largest(close)) <= before_slots(run)


def test_looks_at_what_was_slow_take_no_place_of_a_contender(close: dict[int, Known]) -> None:
    busy = simulated("dynatune", 120, known=close, landscape=Busy)
    assert len(repeated(busy)) >= len(OPERATORS)
    assert before_slots(busy) == starts(largest(close)) | starts(close, 1)


@pytest.mark.mutation
def test_without_contenders_their_lack_is_noticed(close: dict[int, Known], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "MOST", 0.0)
    assert before_slots(simulated("dynatune", 100, known=close)) == starts(close, 1)


def test_operators_that_get_no_slots_have_no_contenders(close: dict[int, Known]) -> None:
    one, *others = largest(close)
    small = next(index for index in close if index not in (one, *others))
    measured = before_slots(simulated("dynatune", 100, known=close, tuned=[one, small]))
    assert {operator for operator, _ in measured - starts(close, 1)} == {one}


def test_paused_before_contenders_and_resumed_is_the_whole_run(tmp_path: Path, close: dict[int, Known]) -> None:
    whole = simulated("dynatune", 60, known=close)
    begun = simulated("dynatune", 60, known=close, wish=Wish("pause", 1))
    assert before_slots(begun) < before_slots(whole)
    rest = simulated("dynatune", 60, known=close, history=kept(tmp_path, begun.lines))
    assert sequence(begun.measurements + rest.measurements) == sequence(whole.measurements)


def test_an_operator_nobody_knows_is_searched_as_ever(known: dict[int, Known]) -> None:
    some = {index: points for index, points in known.items() if index != 2}
    second = simulated("round_robin", 200, known=some)
    assert {m["origin"] for m in second.measurements if m["operator"] == 2} == {"start", "random", "explorer"}
    assert second.events[-1]["latency"]


@pytest.mark.mutation
def test_knowledge_with_shuffled_times_is_noticed(first: Simulation, known: dict[int, Known]) -> None:
    rng = np.random.default_rng(1)
    wrong = {}
    for index, found in known.items():
        order = rng.permutation(len(found.points))
        pairs = zip(found.points, order, strict=True)
        wrong[index] = Known(tuple(replace(point, seconds=found.points[i].seconds) for point, i in pairs))
    end = first.events[-1]
    second = simulated(chosen=WHOLE, budget=Budget(seconds=0.1 * end["clock"]), known=wrong, seed=8)
    assert clock_at(second, end["latency"]) == float("inf")


def test_a_resume_whose_earlier_runs_were_deleted_goes_on(tmp_path: Path, known: dict[int, Known]) -> None:
    begun = simulated("dynatune", 200, known=known, wish=Wish("pause", 9))
    assert simulated("dynatune", 200, history=kept(tmp_path, begun.lines)).events[-1]["reason"] == "trials"


def alike(known: dict[int, Known]) -> dict[int, Known]:
    """As if all of it had been found of others with the same knobs."""
    return {operator: Known(alike=(found,)) for operator, found in known.items()}


def test_what_is_known_of_others_with_the_same_knobs_is_as_exact_when_a_run_goes_on(
    tmp_path: Path, known: dict[int, Known]
) -> None:
    like = alike(known)
    whole = simulated("auto", 200, known=like)
    begun = simulated("auto", 200, known=like, wish=Wish("pause", 9))
    history = kept(tmp_path, begun.lines)
    assert any(loans for state in history.checkpoint["proposers"] for loans in state["loans"])
    rest = simulated("auto", 200, known=like, history=history)
    assert sequence(begun.measurements + rest.measurements) == sequence(whole.measurements)
    assert simulated("auto", 200, history=history).events[-1]["reason"] == "trials", "they may be deleted meanwhile"


@pytest.mark.mutation
def test_a_resume_that_forgets_what_was_known_is_noticed(tmp_path: Path, known: dict[int, Known]) -> None:
    whole = simulated("dynatune", 200, known=known)
    begun = simulated("dynatune", 200, known=known, wish=Wish("pause", 4))
    rest = simulated("dynatune", 200, history=kept(tmp_path, begun.lines))
    assert sequence(begun.measurements + rest.measurements) != sequence(whole.measurements)


@pytest.mark.mutation
def test_a_history_that_takes_known_points_for_its_own_is_noticed(
    known: dict[int, Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = History.__init__

    def boastful(self: Any, operator: Any, known: Known = Known()) -> None:  # noqa: B008  (frozen)
        made(self, operator, known)
        for start in known.starts:
            self.sketches[start.sketch].visited.add(start.choices)

    monkeypatch.setattr(History, "__init__", boastful)
    second = simulated("dynatune", 60, known=known)
    asked = {(c.operator, c.configuration) for c in second.asked}
    assert not starts(known, STARTS) <= asked
