"""Slots by the record theory: what its formula says on cases small enough for a pencil, and that it is worth something."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.engine.test_scheduler_convergence import Simulation
from workers.engine.belief.records import TYPICAL
from workers.engine.ports import Decision, Progress, Scheduler
from workers.engine.scheduler import RecordGain, RoundRobin
from workers.engine.space import Operator

PLAN = 8


def progress(index: int, curve: Sequence[float], slots: int, weight: int = 1, seconds: float = 0.0) -> Progress:
    operator = Operator(index, f"op{index}", f"k{index}", weight, 1e8, 0.0, 1e8, (), ())
    return Progress(operator, curve, slots, seconds or float(slots), False)


def chosen(scheduler: RecordGain, now: Sequence[Progress]) -> Decision:
    decision = scheduler.choose(now, 1.0)
    assert decision is not None
    return decision


def flat(index: int, slots: int = 1, best: float = 1e-3, weight: int = 1, seconds: float = 0.0) -> Progress:
    return progress(index, [best] * PLAN * slots, slots, weight, seconds)


def test_the_reduction_is_that_of_the_theory_in_ms_and_weighted() -> None:
    decision = chosen(RecordGain(), [flat(0), flat(1, weight=3), flat(2, 3)])
    assert decision.operator == 1
    reduction = 3 * 1.0 * (1 - 2**-TYPICAL)  # 8 more beside 8
    assert decision.terms["r_ms"] == pytest.approx(reduction, rel=1e-3)
    assert decision.terms["operators"]["0"] == [pytest.approx(reduction / 3, rel=1e-3)]
    assert decision.terms["belief"]["x"] == [12, 16, 24, 40]
    assert decision.terms["belief"]["mean_ms"][1] == pytest.approx(2**-TYPICAL, rel=1e-3)
    assert decision.terms["belief"]["low_ms"][1] <= decision.terms["belief"]["mean_ms"][1] <= 1.0


def test_an_operator_whose_configurations_take_long_gets_fewer_into_a_slot() -> None:
    assert chosen(RecordGain(), [flat(0, seconds=4.0), flat(1, best=0.5e-3)]).operator == 1
    assert chosen(RecordGain(), [flat(0), flat(1, best=0.5e-3)]).operator == 0


def test_of_equal_operators_the_one_that_still_gains_goes_first() -> None:
    gaining = progress(1, [2e-3, 1.6e-3, 1.3e-3, 1.1e-3] + [1e-3] * 4, 1)
    assert chosen(RecordGain(), [flat(0), gaining, flat(2)]).operator == 1


def test_untried_ones_go_first_by_their_share_and_those_without_a_valid_configuration_before_all() -> None:
    decision = chosen(RecordGain(), [progress(0, [1e-3], 0), progress(1, [1e-3], 0, weight=2), flat(2, weight=9)])
    assert (decision.operator, decision.rule) == (1, "gamma")
    lost = progress(0, [math.inf], 0)
    decision = chosen(RecordGain(), [lost, progress(1, [1e-3], 0, weight=2), flat(2, weight=9)])
    assert (decision.operator, decision.rule) == (0, "rescue")


def test_what_is_expected_reaches_the_rule_that_ends_a_run() -> None:
    one = flat(0)
    assert RecordGain().foreseen(one, PLAN) == pytest.approx(1e-3 * 2**-TYPICAL)


def above(scheduler: Scheduler, seed: int) -> float:
    """How many doublings the latency was on average above the lowest there is."""
    run = Simulation(seed).run(scheduler)
    lowest = sum(operator.weight * times[-1] for operator, times in zip(run.operators, run.times, strict=True))
    return float(np.mean(np.log2(np.asarray(run.latency) / lowest)))


def worth() -> bool:
    """The gate: on 30 simulated operators a quarter nearer to the lowest latency than with slots in turn."""
    seeds = (0, 1, 2)
    return sum(above(RecordGain(), seed) for seed in seeds) < 0.75 * sum(above(RoundRobin(), seed) for seed in seeds)


def test_it_is_worth_more_than_turns() -> None:
    assert worth()


@pytest.mark.mutation
def test_an_expectation_by_chance_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(RecordGain, "_expected", lambda self, one, slot_seconds: float(rng.random()))
    assert not worth()
