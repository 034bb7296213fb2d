"""How far a best gets in a slot: the formula, what earlier slots correct of it, and that it holds as often as it says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from workers.engine.belief import Records, records
from workers.engine.belief.records import DOUBT, LARGEST, LASTING, TYPICAL, scale

INF = math.inf
SLOT = 8


def drawn(rng: np.random.Generator, count: int) -> list[float]:
    """Best times so far of configurations that are drawn alike, the logarithm of their speed with an exponential tail."""
    return np.minimum.accumulate(1e-3 * np.exp(-rng.exponential(0.1, count))).tolist()


def learnt(rng: np.random.Generator, count: int) -> list[float]:
    """The same of a search that gets better: nearly every slot gains something."""
    return np.minimum.accumulate(1e-3 * np.exp(-rng.exponential(0.1, count) - 0.03 * np.arange(count))).tolist()


def coverage(curve_of: Callable[[np.random.Generator, int], list[float]], end: int = 40) -> float:
    """Share of slots of 40 operators, taken in turn, that ended where a chance of 80 % was told for."""
    told = Records()
    curves = [curve_of(np.random.default_rng(seed), end) for seed in range(40)]
    held = []
    for known in range(SLOT, end, SLOT):
        for operator, curve in enumerate(curves):
            told.observe(operator, curve[:known], known // SLOT)
            held.append(told.least(curve[:known], SLOT, 0.8) <= curve[known + SLOT - 1])
            told.observe(operator, curve[: known + SLOT], known // SLOT + 1)
    return float(np.mean(held))


def calibrated(share: float) -> bool:
    """The gate: 160 slots have a standard error of 3.2 %, and where nothing is the likeliest more than 80 % hold."""
    return 0.7 <= share <= 0.9


@pytest.mark.parametrize("curve_of", [drawn, learnt])
def test_what_is_told_with_a_chance_of_80_percent_comes_about_as_often(
    curve_of: Callable[[np.random.Generator, int], list[float]],
) -> None:
    assert calibrated(coverage(curve_of))


@pytest.mark.mutation
def test_records_without_spread_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "scale", lambda curve: 1e-12)
    assert not calibrated(coverage(drawn, end=24))
    assert not calibrated(coverage(learnt))


@pytest.mark.mutation
def test_records_that_do_not_learn_from_the_run_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Records, "observe", lambda self, operator, curve, slots: None)
    assert not calibrated(coverage(learnt))


def test_before_the_first_slot_it_is_the_formula() -> None:
    """Of draws that are alike; FIRST has 0.9 as the least chance that 80 % of a right formula's are under."""
    curve = [2e-3] * 10
    gain = TYPICAL * math.log(30 * 0.9 / (10 * 0.1))
    assert Records().least(curve, 30, 0.8) == pytest.approx(2e-3 * math.exp(-gain))
    # n / (n + m) is over 0.9: nothing is the likeliest.
    assert Records().least([2e-3] * 100, 8, 0.8) == 2e-3


def test_the_size_of_a_gain_is_that_of_the_operators_records() -> None:
    assert scale([INF, INF]) == scale([]) == scale([1e-3] * 5) == TYPICAL
    assert scale([INF, 1.0, 0.9, 0.9, 0.72]) == pytest.approx((TYPICAL * DOUBT - math.log(0.72)) / (DOUBT + 2))
    assert scale([1.0, 1e-3]) == pytest.approx((TYPICAL * DOUBT + LARGEST) / (DOUBT + 1))


def test_slots_without_gain_make_it_expect_less_and_gains_more() -> None:
    curve, few, many = [1e-3] * 16, Records(), Records()
    for slot in range(1, 20):
        few.observe(0, [1e-3] * 8 * slot, slot)
        many.observe(0, np.repeat([0.7**place for place in range(slot)], 8).tolist(), slot)
    assert many.least(curve, 16, 0.8) < Records().least(curve, 16, 0.8) < few.least(curve, 16, 0.8) == 1e-3


def test_it_grows_with_the_chance_and_with_the_configurations_ahead() -> None:
    told, curve = Records(), drawn(np.random.default_rng(0), 20)
    assert curve[-1] >= told.least(curve, 8, 0.5) >= told.least(curve, 8, 0.8) > told.least(curve, 32, 0.8) > 0


def test_without_a_valid_configuration_nothing_is_known_and_a_figure_that_got_slower_is_no_gain() -> None:
    told = Records()
    assert told.least([], 8, 0.8) == told.least([INF] * 4, 8, 0.8) == INF
    told.observe(0, [], 0)
    told.observe(0, [INF] * 4, 0)
    told.observe(0, [INF] * 4 + [1e-3] * 4, 1)
    assert told.state()["chances"] == []
    told.observe(0, [INF] * 4 + [2e-3] * 8, 2)  # measured again
    assert told.state()["chances"] == [0.0]
    told.observe(1, [INF] * 8, 1)
    json.dumps(told.state(), allow_nan=False)


def test_what_another_operators_slot_brought_is_no_chance_of_its_own() -> None:
    told = Records()
    told.observe(0, [1e-3] * 8, 1)
    told.observe(0, [1e-3] * 8 + [5e-4], 1)
    assert told.state()["chances"] == []
    told.observe(0, [1e-3] * 8 + [5e-4] * 9, 2)
    assert told.state()["chances"] == [0.0]


def test_a_restored_one_goes_on_identically_and_is_bounded() -> None:
    told = Records()
    for slot in range(1, 300):
        told.observe(slot % 3, drawn(np.random.default_rng(slot % 3), 8 * slot), slot)
    twin = Records()
    twin.restore(json.loads(json.dumps(told.state(), allow_nan=False)))
    assert twin.state() == told.state()
    assert len(told.state()["chances"]) == LASTING
    curve = drawn(np.random.default_rng(9), 16)
    assert twin.least(curve, 8, 0.8) == told.least(curve, 8, 0.8)
