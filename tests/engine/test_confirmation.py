"""The winner's curse: of many figures the best is also the luckiest, and is measured once more."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tests.engine.synthetic_search import WORK, convolution, speed
from workers.engine.cost_model import XGBoost
from workers.engine.explorer import SimulatedAnnealing
from workers.engine.history import History
from workers.engine.known import Known, Point
from workers.engine.ports import Candidate, Outcome
from workers.engine.proposer import GuidedProposer
from workers.engine.sampler import Greedy
from workers.engine.search import Search
from workers.engine.space import Configuration

SHARE = 0.03
CHEAP = 9.0  # lets every doubt be settled; a method's share is at most ALL
ALL = 1.0


def outcome(number: int, seconds: float | None, at: int = 0, spread: float = 0.02, cost: float = 0.1) -> Outcome:
    """Of configuration `number` in round `at`; the spread is relative."""
    candidate = Candidate(0, Configuration(0, (number, 0, 0, 0, 0, 0)), "explorer", at)
    cause = "" if seconds else "timeout"
    return Outcome(
        candidate, candidate.configuration, str(number), seconds, spread * (seconds or 0), 9, "converged", cause,
        build_seconds=cost, measure_seconds=cost,
    )  # fmt: skip


def history(*outcomes: Outcome) -> History:
    made = History(convolution())
    for one in outcomes:
        made.add(one)
    return made


def rounds(found: History, share: float = CHEAP) -> list[tuple[int, int]]:
    return [(one.configuration.choices[0], one.round) for one in found.doubtful(share)]


def test_a_close_best_is_measured_again_with_the_one_it_overtook() -> None:
    found = history(outcome(1, 1.2), outcome(2, 1.0), outcome(3, 0.97))
    assert rounds(found) == [(3, 1), (2, 1)]
    assert {one.origin for one in found.doubtful(CHEAP)} == {"confirm"}


def test_a_clear_best_is_believed() -> None:
    assert rounds(history(outcome(2, 1.0), outcome(3, 0.9))) == []
    assert rounds(history(outcome(2, 1.0), outcome(3, 0.9, spread=0.05))) == [(3, 1), (2, 1)]
    assert rounds(history(outcome(2, 1.0, spread=0.0), outcome(3, 0.92, spread=0.0))) == [(3, 1), (2, 1)]


def test_one_program_alone_has_no_rival() -> None:
    assert rounds(history()) == rounds(history(outcome(1, 1.0))) == rounds(history(outcome(1, None))) == []


def test_a_lucky_figure_loses_its_place() -> None:
    found = history(outcome(2, 1.0), outcome(3, 0.97), outcome(3, 1.05, at=1), outcome(2, 1.01, at=1))
    assert found.best is not None
    assert found.best.configuration.choices[0] == 2
    assert found.best.seconds == 1.01
    assert rounds(found) == []


def test_a_lucky_figure_is_its_sketch_s_best_no_longer() -> None:
    found = history(outcome(2, 1.0), outcome(3, 0.97), outcome(3, 1.05, at=1))
    assert found.sketches[0].best == pytest.approx(WORK / 1.0)
    found.add(outcome(2, 1.01, at=1))
    assert found.sketches[0].best == pytest.approx(WORK / 1.01)
    found.add(outcome(3, None, at=2))
    found.add(outcome(4, 1.2))
    assert found.sketches[0].best == pytest.approx(WORK / 1.01)


def test_the_best_of_another_sketch_and_of_earlier_runs_stays() -> None:
    def elsewhere(seconds: float, at: int = 0) -> Outcome:
        place = Configuration(1, (7, 0, 0, 0, 0, 0))
        return Outcome(Candidate(0, place, "explorer", at), place, "7", seconds)

    earlier = Known(points=(Point(Configuration(0, (9, 0, 0, 0, 0, 0)), 1.02),))
    found = History(convolution(2), earlier)
    for one in (elsewhere(0.9), outcome(2, 0.97), outcome(2, 1.05, at=1)):
        found.add(one)
    assert [seen.best for seen in found.sketches] == pytest.approx([WORK / 1.02, WORK / 0.9])
    found.add(elsewhere(1.1, at=1))
    assert [seen.best for seen in found.sketches] == pytest.approx([WORK / 1.02, WORK / 1.1])


def test_a_third_one_that_comes_to_the_front_is_doubted_next_and_rounds_count_on() -> None:
    confirmed = [outcome(2, 1.0), outcome(3, 0.97), outcome(3, 1.05, at=1), outcome(2, 1.01, at=1)]
    assert rounds(history(*confirmed, outcome(4, 1.0))) == [(4, 1), (2, 2)]


def test_a_round_that_failed_leaves_the_figure_until_a_rival_s_and_is_not_tried_for_ever() -> None:
    found = history(outcome(2, 1.0), outcome(3, 0.97), outcome(3, None, at=1))
    assert found.best is not None
    assert found.best.seconds == 0.97
    found.add(outcome(2, 1.02, at=1))
    assert found.best.seconds == 1.02
    assert rounds(found) == []


def test_rounds_are_no_points_for_the_cost_model_and_no_duplicates() -> None:
    found = history(outcome(2, 1.0), outcome(3, 0.97), outcome(3, 1.05, at=1))
    assert found.sketches[0].speeds == [WORK / 1.0, WORK / 0.97]
    assert found.duplicates == 0


def test_a_doubt_waits_until_its_share_of_the_time_is_there() -> None:
    close = [outcome(2, 1.0), outcome(3, 0.97)]
    assert rounds(history(*close), SHARE) == []
    assert rounds(history(*close, *(outcome(4 + i, 2.0, cost=0.22) for i in range(66))), SHARE) == [(3, 1), (2, 1)]
    spent = [outcome(3, 0.96, at=1), outcome(2, 1.0, at=1), outcome(80, 0.95)]
    assert rounds(history(*close, *(outcome(4 + i, 2.0, cost=0.22) for i in range(66)), *spent), SHARE) == []


class Noisy:
    """Times with an `error`, told as such; a round draws anew. Builds take 0.1 s, measuring 20 ms.

    With `luck` the first program from trial 140 on that is 2 to 6 % slower than the best so far is timed `luck` too fast.
    """

    def __init__(self, seed: int, luck: float = 0.0, error: float = 0.01) -> None:
        self._seed, self._luck, self._error = seed, luck, error
        self._trials, self._best = 0, math.inf

    def __call__(self, candidate: Candidate) -> Outcome:
        configuration = candidate.configuration
        true = self.true(configuration)
        self._trials += 1
        if not math.isfinite(true):
            return Outcome(candidate, configuration, repr(configuration), None, cause="build", build_seconds=0.1)
        rng = np.random.default_rng([self._seed, candidate.round, *configuration.choices])
        seconds = true * float(1 + self._error * rng.normal())
        if self._luck and self._trials > 140 and 1.02 < true / self._best < 1.06:
            seconds, self._luck = seconds * (1 - self._luck), 0.0
        self._best = min(self._best, true)
        return Outcome(candidate, configuration, repr(configuration), seconds, self._error * seconds, 9, "converged",
                       build_seconds=0.1, measure_seconds=0.02)  # fmt: skip

    def true(self, configuration: Configuration) -> float:
        found = speed(configuration)
        return WORK / found if found else math.inf


def made(seed: int, confirm: float = SHARE) -> GuidedProposer:
    def explorer(rng: np.random.Generator) -> SimulatedAnnealing:
        return SimulatedAnnealing(rng, chains=32, steps=30)

    rng = np.random.default_rng(seed)
    return GuidedProposer(
        convolution(), explorer, Greedy(), lambda: XGBoost(seed, rounds=20), rng, Search(confirm=confirm)
    )


def search(proposer: GuidedProposer, landscape: Noisy, trials: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while len(outcomes) < trials:
        answers = [landscape(candidate) for candidate in proposer.propose(8)]
        proposer.observe(answers)
        outcomes += answers
    return outcomes


def flattery(confirm: float) -> float:
    """How much faster the best is said to be than it is, mean of twelve searches of 240 trials with one lucky figure."""
    found = []
    for seed in range(12):
        proposer, landscape = made(seed, confirm), Noisy(seed, luck=0.12)
        search(proposer, landscape, 240)
        assert proposer.best is not None
        found.append(landscape.true(proposer.best.configuration) / (proposer.best.seconds or math.inf) - 1)
    return float(np.mean(found))


def honest(confirm: float) -> bool:
    """The gate: the lucky figure, 13 % too fast, is gone; what is left is the best of many errors of 1 %.

    It stays in three of twelve without rounds and in none with them; means 3.8 % and 0.8 %.
    """
    return flattery(confirm) < 0.02


def test_a_lucky_figure_does_not_stay() -> None:
    assert honest(SHARE)


@pytest.mark.mutation
def test_mutation_without_rounds_it_stays() -> None:
    assert not honest(0.0)


def test_rounds_stay_within_their_share_of_the_time_and_side_by_side() -> None:
    outcomes = search(made(3), Noisy(3), 400)
    cost = [one.build_seconds + one.measure_seconds for one in outcomes]
    again = [place for place, one in enumerate(outcomes) if one.candidate.round > 0]
    assert len(again) >= 4
    assert sum(cost[place] for place in again) <= SHARE * sum(cost)
    assert all(second == first + 1 for first, second in zip(again[::2], again[1::2], strict=True))
    rows = [(one.candidate.configuration, one.candidate.round) for one in outcomes]
    assert len(set(rows)) == len(rows)


def test_run_2n_equals_run_n_state_restore_replay_run_n() -> None:
    landscape = Noisy(5, error=0.06)
    whole, first, resumed = (made(5, ALL) for _ in range(3))
    outcomes, journal = search(whole, landscape, 96), search(first, landscape, 48)
    assert any(one.candidate.round for one in journal)
    resumed.restore(json.loads(json.dumps(first.state())))
    resumed.observe(journal)
    assert [o.candidate for o in journal + search(resumed, landscape, 48)] == [o.candidate for o in outcomes]
    assert json.dumps(resumed.state()) == json.dumps(whole.state())


def test_a_round_in_flight_at_a_kill_is_asked_again_as_that_round() -> None:
    landscape, proposer = Noisy(5, error=0.06), made(5, ALL)
    journal: list[Outcome] = []
    plan = proposer.propose(8)
    while not any(candidate.round for candidate in plan):
        answers = [landscape(candidate) for candidate in plan]
        proposer.observe(answers)
        journal += answers
        plan = proposer.propose(8)
    resumed = made(5, ALL)
    resumed.restore(json.loads(json.dumps(proposer.state())))
    resumed.observe(journal)
    assert resumed.propose(8) == plan
