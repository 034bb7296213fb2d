"""AdaTune's evaluator: when batches agree, what it saves, and what that costs in accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from workers.engine.errors import IllegalMethod
from workers.engine.evaluator import AdaptiveEvaluator, evaluator_from
from workers.engine.methods import METHODS
from workers.engine.ports import Evaluator

PAPER = AdaptiveEvaluator(**METHODS["adatune-paper"].parameters["evaluator"])
FIXED_PAPER = METHODS["autotvm"].make_evaluator()


def timed(evaluator: Evaluator, source: Sequence[float], incumbent: float | None = None) -> list[float]:
    times: list[float] = []
    while more := evaluator.more(times, incumbent):
        times += source[len(times) : len(times) + more]
    return times


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_paper_preset_stops_after_the_third_of_ten_batches_that_agree(noise: float) -> None:
    source = (1e-3 * np.random.default_rng(0).normal(1, noise, 500)).tolist()
    times = timed(PAPER, source)
    assert len(times) == 150
    assert PAPER.verdict(times, None) == "converged"


def test_paper_preset_takes_all_500_runs_when_batches_disagree() -> None:
    source = [1e-3 * (1 + i % 100 // 50) for i in range(500)]
    times = timed(PAPER, source)
    assert len(times) == 500
    assert PAPER.verdict(times, None) == "complete"


def test_where_extremes_count_a_disturbed_batch_keeps_them_apart() -> None:
    """DynaTune's script takes all of them; ten batches of which one is twice as slow deviate by a sixth of their mean."""
    source = [2e-3 if 50 <= i < 100 else 1e-3 for i in range(500)]
    assert len(timed(PAPER, source)) == 250
    assert len(timed(replace(PAPER, extremes=True), source)) == 500


def test_one_disturbed_batch_is_dropped_once_there_are_more_than_four() -> None:
    """Batches 1, 2, 3, 4 ... of which the second is three times slower: agreement comes with the fifth."""
    source = [3e-3 if 50 <= i < 100 else 1e-3 for i in range(500)]
    times = timed(PAPER, source)
    assert len(times) == 250
    assert PAPER.verdict(times, None) == "converged"
    assert PAPER.estimate(times)[0] == pytest.approx(1e-3)


@pytest.mark.parametrize(("seconds", "runs"), [(2e-5, 45), (1e-3, 9), (3e-3, 3), (1.0, 3)])
def test_product_batches_are_3_ms_long_and_a_run_at_least(seconds: float, runs: int) -> None:
    evaluator = AdaptiveEvaluator()
    times = timed(evaluator, [seconds] * 500)
    assert len(times) == runs
    assert evaluator.verdict(times, None) == "converged"


def test_a_restless_program_ends_at_the_limit_of_time() -> None:
    source = (1e-3 * (1 + np.random.default_rng(0).exponential(size=500))).tolist()
    evaluator = AdaptiveEvaluator(epsilon=0.001)
    times = timed(evaluator, source)
    assert evaluator.verdict(times, None) == "complete"
    assert 0.05 <= sum(times) < 0.06


def test_a_much_slower_program_is_cut_after_its_first_run_and_a_slightly_slower_one_once_that_is_certain() -> None:
    evaluator = AdaptiveEvaluator()
    much = timed(evaluator, [30e-3] * 500, 1e-3)
    slightly = timed(evaluator, [1.2e-3, 1.21e-3, 1.2e-3, 1.19e-3] * 100, 1e-3)
    assert (len(much), evaluator.verdict(much, 1e-3)) == (1, "rejected")
    assert (len(slightly), evaluator.verdict(slightly, 1e-3)) == (3, "rejected")
    assert evaluator.verdict(timed(evaluator, [0.99e-3] * 500, 1e-3), 1e-3) == "converged"


def test_the_spread_is_about_the_error_of_the_estimate() -> None:
    """Ten batches of 50 normal runs: trimming costs the mean little, 25 % is for the standard deviation of ten."""
    rng, stubborn = np.random.default_rng(1), replace(PAPER, epsilon=0.0)
    pairs = np.asarray([stubborn.estimate(rng.normal(1.0, 0.05, 500).tolist()) for _ in range(500)])
    assert pairs[:, 1].mean() == pytest.approx(pairs[:, 0].std(), rel=0.25)


def test_a_batch_that_time_ran_out_in_weighs_nothing_beside_full_ones() -> None:
    assert PAPER.estimate([*[0.155] * 50, 0.310])[0] == pytest.approx(0.155)
    assert PAPER.estimate([0.310])[0] == 0.310


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"batch": -1}, "must be a number of runs"),
        ({"batch_seconds": 0.0}, "must be a number of runs"),
        ({"batches": 0}, "batches 0 at least 1"),
        ({"most": 2}, "most 2 must be above batches 2"),
        ({"epsilon": -0.1}, "must not be negative"),
        ({"reject": 0.5}, "would cut programs faster"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(IllegalMethod, match=reason):
        evaluator_from("adaptive", parameters)


@dataclass(frozen=True)
class Column:
    """What an evaluator makes of the programs: estimates (s), mean runs, mean seconds of timed runs."""

    estimates: NDArray[np.float64]
    runs: float
    seconds: float


PROGRAMS = 1e-3 * np.random.default_rng(0).uniform(1, 2, 300)
"""As close as the good half of a search: with 32-fold differences any evaluator would order them."""
NOISES = (0.02, 0.05, 0.07)
"""Mean of the exponential slow-down of a run: a quiet machine, the usual 4-5 %, one with neighbours."""


def measured(evaluator: Evaluator, noise: float, turn: int) -> Column:
    """Each program differs by 1 % from turn to turn, as pages of memory and frequencies do."""
    found = []
    for number, true in enumerate(PROGRAMS):
        rng = np.random.default_rng([turn, number])
        source = true * (1 + 0.01 * rng.normal()) * (1 + noise * rng.exponential(size=520))
        times = timed(evaluator, source.tolist())
        found.append((evaluator.estimate(times)[0], len(times), sum(times)))
    table = np.asarray(found)
    return Column(table[:, 0], float(table[:, 1].mean()), float(table[:, 2].mean()))


def same_order(one: Column, two: Column) -> float:
    return float(spearmanr(one.estimates, two.estimates).statistic)


@pytest.fixture(scope="module")
def fixed_twice() -> dict[float, tuple[Column, Column]]:
    return {noise: (measured(FIXED_PAPER, noise, 1), measured(FIXED_PAPER, noise, 2)) for noise in NOISES}


def keeps_the_order(evaluator: Evaluator, fixed_twice: dict[float, tuple[Column, Column]]) -> bool:
    """Within 0.01 of what 500 runs agree with themselves, at a third of the runs at most, at every level of noise.

    Lost here: the paper's preset 0.000-0.001, the product's 0.002, 0.004 and 0.007.
    """
    for noise, (first, second) in fixed_twice.items():
        column = measured(evaluator, noise, 3)
        if column.runs > 500 / 3 or same_order(first, column) < same_order(first, second) - 0.01:
            return False
    return True


@pytest.mark.parametrize("evaluator", [PAPER, AdaptiveEvaluator()], ids=["paper", "product"])
def test_a_third_of_the_runs_keeps_the_order_of_programs(evaluator: Evaluator, fixed_twice: Any) -> None:
    assert keeps_the_order(evaluator, fixed_twice)


@pytest.mark.mutation
def test_mutation_an_epsilon_that_always_agrees_fails_the_gate(fixed_twice: Any) -> None:
    assert not keeps_the_order(AdaptiveEvaluator(epsilon=1e9), fixed_twice)


def measures_less(evaluator: Evaluator, noise: float) -> bool:
    """Than MetaSchedule's 100 ms, by a third."""
    theirs = measured(METHODS["metaschedule"].make_evaluator(), noise, 1).seconds
    assert theirs == pytest.approx(0.1, rel=0.05)
    return 1.5 * measured(evaluator, noise, 1).seconds < theirs


@pytest.mark.parametrize("noise", NOISES)
def test_less_measuring_than_metaschedules_100_ms(noise: float) -> None:
    assert measures_less(AdaptiveEvaluator(), noise)


@pytest.mark.mutation
def test_mutation_batches_that_never_agree_measure_as_long_as_they_may() -> None:
    assert not measures_less(AdaptiveEvaluator(epsilon=0.0, seconds=0.1), NOISES[0])
