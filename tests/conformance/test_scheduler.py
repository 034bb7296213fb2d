"""What every scheduler owes the loop; rules of single schedulers are in tests/engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from workers.engine.errors import IllegalMethod
from workers.engine.methods import METHODS
from workers.engine.ports import Decision, Foreseeing, Progress, Scheduler
from workers.engine.scheduler import SCHEDULERS, DynaTune, Setting, scheduler_named
from workers.engine.space import Operator

pytestmark = pytest.mark.parametrize("name", sorted(SCHEDULERS))


def progress(index: int, slots: int, exhausted: bool = False) -> Progress:
    operator = Operator(index, f"op{index}", f"k{index}", 1 + index, 1e8, 0.0, 1e8, (), ())
    curve = [1e-3 / (1 + 0.1 * (index + place % 7 + place // 7)) for place in range(1 + 8 * slots)]
    best = [min(curve[: place + 1]) for place in range(len(curve))]
    return Progress(operator, best, slots, 0.8 * slots, exhausted)


SETTING = Setting(3, 1e12, trials=84)
CURVES = {str(index): progress(index, 60).curve for index in range(30)}


def made(name: str, **parameters: Any) -> Scheduler:
    """The oracle is no scheduler without curves."""
    return scheduler_named(name, SETTING, **({"curves": CURVES} if name == "oracle" else {}), **parameters)


def play(scheduler: Scheduler, slots: list[int], count: int, done: Sequence[int] = ()) -> list[Decision]:
    decisions = []
    for _ in range(count):
        decision = scheduler.choose([progress(i, n, i in done) for i, n in enumerate(slots)], 1.0)
        assert decision is not None
        slots[decision.operator] += 1
        scheduler.observe(progress(decision.operator, slots[decision.operator]))
        decisions.append(decision)
    return decisions


def test_gives_slots_only_to_operators_that_are_not_exhausted(name: str) -> None:
    decisions = play(made(name), [0] * 4, 8, done=(1, 3))
    assert {decision.operator for decision in decisions} == {0, 2}
    assert all(decision.rule for decision in decisions)


def test_ends_when_everything_is_exhausted(name: str) -> None:
    scheduler = made(name)
    assert scheduler.choose([progress(0, 1, True), progress(1, 0, True)], 1.0) is None
    assert scheduler.choose([], 1.0) is None


def test_decisions_are_json_and_equal_for_equal_seeds(name: str) -> None:
    one, two = (play(made(name), [0] * 4, 9) for _ in range(2))
    assert one == two
    json.dumps([decision.terms for decision in one], allow_nan=False)


def test_every_operator_gets_a_slot_in_time(name: str) -> None:
    """24: at random an operator goes without with a probability of 0.1 %."""
    assert {decision.operator for decision in play(made(name), [0] * 4, 24)} == {0, 1, 2, 3}


def test_an_operator_that_never_works_keeps_no_slots_from_the_others(name: str) -> None:
    """What it takes is infinite. 24 slots: `rescue` gives it four more than the others have on average."""
    scheduler, slots = made(name), [0] * 4
    for _ in range(24):
        every = [progress(i, n) for i, n in enumerate(slots)]
        every[3] = replace(every[3], curve=[float("inf")] * len(every[3].curve))
        decision = scheduler.choose(every, 1.0)
        assert decision is not None
        slots[decision.operator] += 1
        scheduler.observe(every[decision.operator])
    assert all(slots[:3])


def test_what_is_foreseen_is_no_slower_than_now_and_asking_changes_nothing(name: str) -> None:
    """Of those that believe something."""
    scheduler, slots = made(name), [0] * 4
    play(scheduler, slots, 9)
    assert isinstance(scheduler, Foreseeing) == isinstance(scheduler, DynaTune)
    if isinstance(scheduler, Foreseeing):
        before = json.dumps(scheduler.state())
        for one in (progress(index, count) for index, count in enumerate(slots)):
            times = [scheduler.foreseen(one, ahead) for ahead in (0.1, 8.0, 80.0)]
            assert 0 < times[2] <= times[1] <= times[0] <= one.best
        assert json.dumps(scheduler.state()) == before


def test_the_terms_stay_small(name: str) -> None:
    """2 kB for 30 operators: every slot of a run is kept and sent to every page that watches it."""
    decisions = play(made(name), [0] * 30, 34)
    assert max(len(json.dumps(decision.terms)) for decision in decisions) < 2048


def test_a_parameter_it_does_not_have_is_told(name: str) -> None:
    with pytest.raises(IllegalMethod, match=f"scheduler '{name}' does not accept .*'flavour': 'vanilla'"):
        made(name, flavour="vanilla")


def test_its_patience_finishes_an_operator(name: str) -> None:
    """Of those that take one, as all of the presets do."""
    try:
        scheduler = made(name, patience=5)
    except IllegalMethod:
        assert name not in {preset.scheduler for preset in METHODS.values()}
        return
    stuck, going = replace(progress(0, 0), curve=[2e-3] + [1e-3] * 6), replace(progress(1, 0), curve=[2e-3, 1e-3])
    decision = scheduler.choose([stuck, going], 1.0)
    assert decision is not None
    assert decision.operator == 1


def test_a_restored_scheduler_goes_on_as_the_first_one(name: str) -> None:
    first, slots = made(name), [0] * 4
    play(first, slots, 6)
    second = made(name)
    second.restore(json.loads(json.dumps(first.state(), allow_nan=False)))
    assert play(first, list(slots), 5) == play(second, list(slots), 5)
