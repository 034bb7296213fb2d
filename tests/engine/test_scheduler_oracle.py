"""Hindsight: the best split of slots, the regret against it, and the scheduler that knows the curves."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.engine.errors import IllegalMethod
from workers.engine.ports import Progress
from workers.engine.scheduler import Oracle, Setting, regret, scheduler_named
from workers.engine.scheduler.oracle import best_split
from workers.engine.space import Operator

PLATEAU = [10.0, 9.0, 9.0, 4.0]
EVEN = [10.0, 8.0, 7.0, 6.5]

falling = st.lists(st.integers(0, 9), min_size=1, max_size=6).map(lambda drops: list(20.0 - np.cumsum([0, *drops]) / 3))


def progress(index: int, curve: list[float], slots: int, weight: int = 1) -> Progress:
    """One configuration a slot."""
    operator = Operator(index, f"op{index}", f"k{index}", weight, 1e8, 0.0, 1e8, (), ())
    return Progress(operator, curve[: 1 + slots], slots, float(1 + slots), False)


def schedule(scheduler: Oracle, curves: list[list[float]], slots: int) -> list[int]:
    given = [0] * len(curves)
    order = []
    for _ in range(slots):
        decision = scheduler.choose([progress(i, curve, given[i]) for i, curve in enumerate(curves)], 1.0)
        assert decision is not None
        given[decision.operator] += 1
        order.append(decision.operator)
    return order


def test_regret_is_what_the_best_split_of_as_many_slots_would_have_taken_off_too() -> None:
    # The best of one slot is 2, of two 2 + 1, of three the whole plateau, 6; taken are 2, 3 and 3.5.
    assert regret([1, 1, 1], [PLATEAU, EVEN], [1, 1]) == pytest.approx([0, 0, 2.5])
    assert regret([0, 0, 0], [PLATEAU, EVEN], [1, 1]) == pytest.approx([1, 2, 0])
    # With three times the weight: 6, 9, 10.5 against 6.
    assert regret([0, 0, 0], [PLATEAU, EVEN], [1, 3]) == pytest.approx([5, 8, 4.5])
    assert regret([0] * 5, [[1.0]], [1]) == pytest.approx([0] * 5)
    assert len(regret([], [PLATEAU], [1])) == 0


@pytest.mark.parametrize("curve", [[], [float("inf"), 1.0], [1.0, 2.0], [float("nan")]])
def test_a_regret_needs_curves_that_are_finite_and_fall(curve: list[float]) -> None:
    with pytest.raises(ValueError, match="must be finite and must not increase"):
        regret([0], [curve], [1])


@settings(max_examples=60, deadline=None)
@given(curves=st.lists(falling, min_size=1, max_size=3), slots=st.integers(0, 6), draw=st.data())
def test_the_best_split_is_the_best_of_all_and_no_choice_beats_it(
    curves: list[list[float]], slots: int, draw: st.DataObject
) -> None:
    weights = [1 + index for index in range(len(curves))]

    def latency(split: tuple[int, ...] | list[int]) -> float:
        return sum(w * c[min(n, len(c) - 1)] for w, c, n in zip(weights, curves, split, strict=True))

    every = [split for split in itertools.product(range(slots + 1), repeat=len(curves)) if sum(split) == slots]
    split = best_split(curves, weights, slots)
    assert latency(split) == pytest.approx(min(map(latency, every)))
    assert sum(split) <= slots
    choices = draw.draw(st.lists(st.integers(0, len(curves) - 1), min_size=slots, max_size=slots))
    assert np.all(regret(choices, curves, weights) >= 0)


def test_the_oracle_looks_over_a_plateau() -> None:
    scheduler = Oracle({0: PLATEAU, 1: EVEN})
    # 6 over three slots is as steep as 2 over one, and comes first by index; then EVEN's 2, 1 and 0.5.
    assert schedule(scheduler, [PLATEAU, EVEN], 7) == [0, 0, 0, 1, 1, 1, 0]
    last = scheduler.choose([progress(0, PLATEAU, 4), progress(1, EVEN, 3)], 1.0)
    assert last is not None
    assert last.rule == "remainder"


def test_an_oracle_that_looks_one_slot_ahead_takes_what_the_slot_itself_brings() -> None:
    """It stands before the plateau until nothing else brings anything: EVEN's 2 and 1, PLATEAU's 1, EVEN's 0.5, and turns."""
    scheduler = Oracle({0: PLATEAU, 1: EVEN}, ahead=1)
    assert schedule(scheduler, [PLATEAU, EVEN], 4) == [1, 0, 1, 1]
    over = schedule(Oracle({0: PLATEAU, 1: EVEN}, ahead=3), [PLATEAU, EVEN], 7)
    assert over == schedule(Oracle({0: PLATEAU, 1: EVEN}), [PLATEAU, EVEN], 7)
    last = scheduler.choose([progress(0, PLATEAU, 1), progress(1, EVEN, 3)], 1.0)
    assert last is not None
    assert (last.rule, last.operator) == ("remainder", 0)
    with pytest.raises(ValueError, match="ahead 0 starts at 1 slot"):
        Oracle({0: PLATEAU}, ahead=0)


def test_with_a_horizon_the_oracle_has_no_regret_at_the_end() -> None:
    for horizon in range(1, 7):
        order = schedule(Oracle({0: PLATEAU, 1: EVEN}, horizon=horizon), [PLATEAU, EVEN], horizon)
        assert regret(order, [PLATEAU, EVEN], [1, 1])[-1] == 0


@pytest.mark.mutation
def test_an_oracle_that_does_not_look_over_plateaus_is_noticed() -> None:
    """The curve as far as its plateau: the jump behind it is what the oracle is for."""
    order = schedule(Oracle({0: PLATEAU[:3], 1: EVEN}, horizon=3), [PLATEAU, EVEN], 3)
    assert regret(order, [PLATEAU, EVEN], [1, 1])[-1] > 0


def test_without_curves_an_oracle_is_no_method() -> None:
    with pytest.raises(IllegalMethod, match=r"'oracle' needs the recorded curves .* choose another scheduler"):
        scheduler_named("oracle", Setting(0, 1e12))
    scheduler = scheduler_named("oracle", Setting(0, 1e12), curves=[PLATEAU])
    with pytest.raises(IllegalMethod, match=r"no recorded curve of operator 1; it has \[0\]"):
        scheduler.choose([progress(0, PLATEAU, 0), progress(1, EVEN, 0)], 1.0)
    named = scheduler_named("oracle", Setting(0, 1e12), curves={"0": PLATEAU, "1": EVEN})
    assert named.choose([progress(0, PLATEAU, 0), progress(1, EVEN, 0)], 1.0) is not None


def test_an_operator_without_a_valid_configuration_is_rescued() -> None:
    lost = Progress(progress(1, EVEN, 0).operator, [float("inf")], 0, 1.0, False)
    decision = Oracle({0: PLATEAU, 1: EVEN}).choose([progress(0, PLATEAU, 0), lost], 1.0)
    assert decision is not None
    assert (decision.operator, decision.rule) == (1, "rescue")


def test_a_slot_of_an_operator_that_had_none_is_as_long_as_any() -> None:
    """After the warm-up it has one configuration, which is no measure for a slot of three."""
    late, soon = [10.0, 10.0, 10.0, 5.0], [10.0, 9.0, 8.5, 8.0]
    fresh = [Progress(progress(i, curve, 0).operator, curve[:1], 0, 1.0, False) for i, curve in enumerate((late, soon))]
    for plan, best in ((3, 0), (None, 1)):
        decision = Oracle({0: late, 1: soon}, ahead=1, plan=plan).choose(fresh, 1.0)
        assert decision is not None
        assert decision.operator == best
    with pytest.raises(ValueError, match="plan 0 at 1 configuration"):
        Oracle({0: late}, plan=0)


def test_what_is_not_built_takes_a_place_in_a_plan() -> None:
    """Every second candidate of the first is a duplicate: a plan of two brings one of its configurations."""
    halved, even = [10.0, 10.0, 6.0], [10.0, 9.0, 8.0]
    fresh = [
        Progress(progress(i, curve, 0).operator, curve[:1], 0, 1.0, False) for i, curve in enumerate((halved, even))
    ]
    for places, best in ((None, 0), ({0: [0, 2, 4], 1: [0, 1, 2]}, 1)):
        decision = Oracle({0: halved, 1: even}, ahead=1, plan=2, places=places).choose(fresh, 1.0)
        assert decision is not None
        assert decision.operator == best


def test_what_a_plan_ended_with_was_had_though_it_was_no_point() -> None:
    """Of the first two candidates of a slot the second was a duplicate, the next two bring 9 and 5."""
    ended, even = [10.0, 10.0, 9.0, 5.0], [10.0, 10.0, 9.5, 9.0]
    begun = [replace(progress(i, curve, 1), curve=curve[:2]) for i, curve in enumerate((ended, even))]
    oracle = Oracle({0: ended, 1: even}, ahead=1, plan=2, places={0: [0, 1, 3, 4], 1: [0, 1, 2, 3]})
    decision = oracle.choose(begun, 1.0)
    assert decision is not None
    assert (decision.operator, decision.terms["operators"]["0"]) == (0, [pytest.approx(5e3)])


def test_an_operator_of_which_nothing_was_built_has_nothing_to_gain() -> None:
    nothing = replace(progress(0, EVEN, 0), curve=[], slots=9)  # no rescue any more
    decision = Oracle({0: [], 1: EVEN}, plan=2, places={0: [], 1: [0, 1, 2, 3]}).choose(
        [nothing, progress(1, EVEN, 0)], 1.0
    )
    assert decision is not None
    assert decision.operator == 1
