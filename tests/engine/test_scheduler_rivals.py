"""DynaTune's rivals: what each formula says on cases small enough for a pencil."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from workers.benchmarks.methods.arms import arm_named
from workers.engine.belief import FAST
from workers.engine.errors import IllegalMethod
from workers.engine.ports import Decision, Progress, Scheduler
from workers.engine.scheduler import (
    PRODUCT_RULE,
    EpsilonGreedy,
    Gradient,
    Linear,
    Setting,
    Softmax,
    scheduler_named,
)
from workers.engine.scheduler.dynatune import Index
from workers.engine.scheduler.gradient import similarity
from workers.engine.space import Knob, Operator, Sketch

PEAK = 1e12
QUICK = replace(PRODUCT_RULE, sampling=replace(FAST, steps=24, burn=8, samples=60))
LOOPS = (Sketch((Knob("loop0", "tile", ((1, 2), (2, 1))),)),)
INF = float("inf")


def progress(
    index: int,
    curve: Sequence[float],
    slots: int = 0,
    weight: int = 1,
    work: float = 1e8,
    seconds: float = 0.0,
    sketches: tuple[Sketch, ...] = (),
    name: str = "fused_conv2d_add",
) -> Progress:
    operator = Operator(index, f"{name}{index}", f"k{index}", weight, work, 0.0, work, sketches, ())
    return Progress(operator, curve, slots, seconds, False)


def chosen(scheduler: Scheduler, now: Sequence[Progress]) -> Decision:
    decision = scheduler.choose(now, 1.0)
    assert decision is not None
    return decision


def test_linear_gives_three_quarters_to_three_times_the_work() -> None:
    scheduler, seconds, order = Linear(), [0.0, 0.0], []
    for _ in range(8):
        now = [progress(0, [1e-3], work=1e6, seconds=seconds[0]), progress(1, [1e-3], 0, 3, 1e6, seconds[1])]
        order.append(chosen(scheduler, now).operator)
        seconds[order[-1]] += 1.0
    # After n slots operator 1 should have 3/4 n seconds; the one furthest behind, in a tie the larger, is next.
    assert order == [1, 1, 0, 1, 1, 1, 0, 1]


def test_linear_is_linear_in_time_and_not_in_slots() -> None:
    slow, quick = progress(0, [1e-3], 1, seconds=4.0), progress(1, [1e-3], 3, seconds=1.5)
    decision = chosen(Linear(), [slow, quick])
    assert decision.operator == 1
    # Half of 5.5 s and of the second to come, less what it had.
    assert decision.terms == {"share": 0.5, "behind_seconds": 1.75}


def test_random_gives_every_operator_the_same_chance() -> None:
    """3,000 slots over three: 1,000 each with a spread of 26; 4 spreads."""
    now = [progress(i, [1e-3], weight=1 + 9 * i) for i in range(3)]
    scheduler = scheduler_named("random", Setting(1, PEAK))
    counts = Counter(chosen(scheduler, now).operator for _ in range(3000))
    assert all(abs(counts[i] - 1000) < 104 for i in range(3))


@pytest.mark.parametrize("kind", ["random", "round_robin"])
def test_dynamic_allocation_reallocates_the_slots_of_operators_without_improvement(kind: str) -> None:
    """Static allocation goes on with an operator that found nothing in 200 configurations (DynaTune 5.2 and 5.3)."""
    now = [progress(0, [2e-3] + [1e-3] * 201, 9), progress(1, [2e-3] + [1e-3] * 200, 9)]
    static, dynamic = (scheduler_named(name, Setting(0, PEAK)) for name in (kind, f"dynamic_{kind}"))
    assert {chosen(static, now).operator for _ in range(20)} == {0, 1}
    assert {chosen(dynamic, now).operator for _ in range(20)} == {1}
    assert dynamic.choose(now[:1], 1.0) is None
    patient = scheduler_named(f"dynamic_{kind}", Setting(0, PEAK), patience=300)
    assert {chosen(patient, now).operator for _ in range(20)} == {0, 1}


def rising(index: int, weight: int = 1) -> Progress:
    """A curve that still rises, of an operator that had three slots."""
    return progress(index, (1e-3 / np.arange(1.0, 25) ** 0.3).tolist(), 3, weight, seconds=3.0)


def test_epsilon_greedy_takes_the_largest_expected_reduction_but_for_epsilon() -> None:
    """400 choices at 0.05: 20 at random with a spread of 4.4; three spreads."""
    now = [rising(0), rising(1, weight=7), rising(2)]
    decisions = [chosen(scheduler, now) for scheduler in [EpsilonGreedy(0, PEAK, rule=QUICK)] for _ in range(400)]
    rules = Counter(one.rule for one in decisions)
    assert {one.operator for one in decisions if one.rule == "greedy"} == {1}
    assert 7 <= rules["epsilon"] <= 33
    assert rules["epsilon"] + rules["greedy"] == 400
    # Random means any operator: half of the chances to miss the best one would be 2e-3.
    assert {one.operator for one in decisions if one.rule == "epsilon"} >= {0, 2}
    greedy = scheduler_named("epsilon_greedy", Setting(0, PEAK), epsilon=0.0)
    assert {chosen(greedy, now).rule for _ in range(50)} == {"greedy"}
    with pytest.raises(IllegalMethod, match=r"epsilon 1\.5 is no probability"):
        scheduler_named("epsilon_greedy", Setting(0, PEAK), epsilon=1.5)


BY_SPEED = replace(QUICK, score="speed", scale="millisecond", open=False)


def table(*rows: tuple[float, float]) -> list[Index]:
    """Operators by what is expected of them and what is known without a belief."""
    return [Index(number, expected, 0.0, False, 1.0, known=known) for number, (expected, known) in enumerate(rows)]


def test_a_choice_by_speed_that_needed_no_belief_is_not_credited_to_it() -> None:
    """The plateau is twice as fast as what still rises: it would have been chosen anyway."""
    now = [rising(0), progress(1, [2e-4] * 24, 3, seconds=3.0)]
    decision = chosen(EpsilonGreedy(0, PEAK, rule=BY_SPEED, epsilon=0.0), now)
    assert (decision.operator, decision.rule, decision.terms["decided_by_belief"]) == (1, "speed", False)


@pytest.mark.parametrize(
    ("rows", "believed"),
    [
        ([(50.0, 5.0), (8.0, 8.0)], True),
        ([(50.0, 50.0), (8.0, 8.0)], False),
        ([(50.0, 0.0), (8.0, 0.0)], True),  # of a reduction nothing is known without a belief
        ([(0.0, 0.0)], False),
    ],
)
@pytest.mark.parametrize("kind", ["greedy", "softmax"])
def test_the_belief_decides_where_the_choice_is_not_the_one_without_it(
    kind: str, rows: list[tuple[float, float]], believed: bool
) -> None:
    scheduler = (
        EpsilonGreedy(0, PEAK, rule=BY_SPEED, epsilon=0.0)
        if kind == "greedy"
        else Softmax(0, PEAK, rule=BY_SPEED, unit="millisecond")
    )
    one, _, terms = scheduler._draw(table(*rows))
    assert (one.operator, terms["decided_by_belief"]) == (0, believed)


@pytest.mark.parametrize("kind", [EpsilonGreedy, Softmax])
def test_untried_operators_go_first_by_their_share_of_the_latency(kind: type[EpsilonGreedy] | type[Softmax]) -> None:
    now = [progress(0, [1e-3]), progress(1, [1e-3], weight=5), rising(2)]
    decision = chosen(kind(0, PEAK, rule=replace(QUICK, open=False)), now)
    assert (decision.operator, decision.rule) == (1, "gamma")


def test_softmax_is_exponential_in_the_expected_reduction() -> None:
    by_ms = Softmax(0, PEAK, rule=QUICK, unit="millisecond")
    assert by_ms._chances([0.0, np.log(2)]) == pytest.approx([1 / 3, 2 / 3])
    assert Softmax(0, PEAK, rule=QUICK, temperature=0.5, unit="millisecond")._chances([0.0, np.log(2)]) == (
        pytest.approx([1 / 5, 4 / 5])
    )
    by_mean = Softmax(0, PEAK, rule=QUICK)
    assert by_mean._chances([1.0, 3.0]) == pytest.approx(np.exp([0.5, 1.5]) / np.exp([0.5, 1.5]).sum())
    assert by_mean._chances([1e-4, 3e-4]) == pytest.approx(by_mean._chances([1.0, 3.0]))
    assert by_mean._chances([0.0, 0.0]) == pytest.approx([0.5, 0.5])
    with pytest.raises(IllegalMethod, match="temperature 0 must be positive"):
        scheduler_named("softmax", Setting(0, PEAK), temperature=0)
    with pytest.raises(IllegalMethod, match="unit 'furlong'"):
        scheduler_named("softmax", Setting(0, PEAK), unit="furlong")


def test_softmax_samples_with_the_chances_it_tells() -> None:
    """600 choices among three; four spreads of the share of the likeliest."""
    now, scheduler = [rising(0), rising(1, weight=3), rising(2)], Softmax(0, PEAK, rule=QUICK)
    decisions = [chosen(scheduler, now) for _ in range(600)]
    likely = next(one.terms["probability"] for one in decisions if one.operator == 1)
    share = sum(one.operator == 1 for one in decisions) / 600
    assert likely > 0.5
    assert abs(share - likely) < 4 * np.sqrt(likely * (1 - likely) / 600)


def tuned(scheduler: Gradient, index: int, times: Sequence[float], **fields: object) -> Progress:
    """An operator whose best time was `times` after its slots, told to `scheduler` slot by slot."""
    now = progress(index, [])
    for slots in range(1, len(times) + 1):
        now = progress(index, times[:slots], slots, **fields)  # type: ignore[arg-type]
        scheduler.observe(now)
    return now


def test_the_gradient_is_ansors_formula() -> None:
    scheduler = Gradient(0, epsilon=0.0)
    one = tuned(scheduler, 0, [10e-3, 8e-3, 6e-3, 4e-3], weight=2)
    idle = tuned(scheduler, 1, [1e-3] * 40)
    decision = chosen(scheduler, [one, idle])
    assert (decision.operator, decision.rule) == (0, "gradient")
    # Backward: 2 x (4 - 10) ms over the window of 3. Forward: a fourth of 2 x 4 ms, as it had four slots.
    assert decision.terms["operators"] == {"0": [-4.0, -2.0], "1": [0.0, -0.025]}
    assert decision.terms["gradient_ms"] == pytest.approx(0.2 * -4 + 0.8 * -2)


def test_before_the_window_is_full_only_the_guess_counts() -> None:
    scheduler = Gradient(0, epsilon=0.0)
    decision = chosen(scheduler, [tuned(scheduler, 0, [9e-3, 6e-3, 3e-3]), tuned(scheduler, 1, [1e-3] * 9)])
    assert decision.terms["operators"]["0"] == [0.0, -1.0]


def test_what_anothers_slot_brought_an_operator_is_of_the_slot_before() -> None:
    """A twin's best found between its slots: the window stays as long as it was."""
    scheduler, twin = Gradient(0), Gradient(0)
    tuned(scheduler, 0, [10e-3, 8e-3, 6e-3, 4e-3])
    tuned(twin, 0, [10e-3, 8e-3, 6e-3, 5e-3])
    last = progress(0, [10e-3, 8e-3, 6e-3, 5e-3, 4e-3], 4)
    twin.observe(last)
    assert (
        chosen(twin, [last]).terms["operators"] == chosen(scheduler, [last]).terms["operators"] == {"0": [-2.0, -1.0]}
    )


def test_similar_operators_say_how_fast_one_may_become() -> None:
    """Next to one of 1 ms, an operator of 4 ms and the same work need not be slower than 2 x 1 ms."""
    scheduler = Gradient(0)
    slow, fast = (tuned(scheduler, i, [t] * 4, sketches=LOOPS) for i, t in ((0, 4e-3), (1, 1e-3)))
    assert chosen(scheduler, [slow, fast]).terms["operators"] == {"0": [0.0, -2.0], "1": [0.0, -0.25]}
    # Ten times the work is of another magnitude, and without knobs nobody is similar.
    other = tuned(scheduler, 1, [1e-3] * 4, sketches=LOOPS, work=1e9)
    assert chosen(scheduler, [slow, other]).terms["operators"]["0"] == [0.0, -1.0]


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        (("fused_conv2d3_add4", "fused_conv2d12_add13_relu9"), True),  # another epilogue
        (("matmul", "fused_matmul4_add1"), True),
        (("fused_conv2d_add", "fused_matmul_add"), False),
        (("fused_conv1d_add", "fused_conv2d_add"), False),
        (("max_pool2d", "concatenate"), False),
        (("max_pool2d", "max_pool2d3"), False),  # Ansor tags products alone
    ],
)
def test_operators_of_another_product_are_not_similar_whatever_their_knobs(names: tuple[str, str], alike: bool) -> None:
    """As of a recorded search, whose one knob is its step."""
    step = (Sketch((Knob("step", "location", ((0,), (1,))),)),)
    one, other = (similarity(progress(i, [1e-3], sketches=step, name=name)) for i, name in enumerate(names))
    assert (one == other != ()) is alike


def test_an_operator_that_stays_behind_leaves_its_group() -> None:
    scheduler = Gradient(0, epsilon=0.0)
    fast = tuned(scheduler, 1, [1e-3] * 2, sketches=LOOPS)
    for slots, forward in ((7, -2.0), (8, -0.5)):
        slow = tuned(scheduler, 0, [4e-3] * slots, sketches=LOOPS)
        assert chosen(scheduler, [slow, fast]).terms["operators"]["0"] == [0.0, forward]
    assert scheduler.state()["outgrown"] == [0]


def test_gradient_warms_up_in_turn_and_explores_with_epsilon() -> None:
    """400 choices at 0.05 among equals in turn: 20 with a spread of 4.4; three spreads."""
    scheduler = Gradient(0, epsilon=0.05)
    now = [progress(0, [1e-3], 1), progress(1, [1e-3]), progress(2, [1e-3])]
    assert (chosen(scheduler, now).operator, chosen(scheduler, now).rule) == (1, "warm_up")
    now = [tuned(scheduler, i, [(1 + i) * 1e-3] * 4) for i in range(3)]
    decisions = [chosen(scheduler, now) for _ in range(400)]
    rules = Counter(one.rule for one in decisions)
    assert {one.operator for one in decisions if one.rule == "gradient"} == {2}
    assert 7 <= rules["epsilon"] <= 33
    even = [tuned(scheduler, i, [1e-3] * 4) for i in range(3)]
    ties = [chosen(scheduler, even) for _ in range(60)]
    assert {one.rule for one in ties} == {"tie"}
    assert {one.operator for one in ties} == {0, 1, 2}
    with pytest.raises(IllegalMethod, match="alpha 3"):
        scheduler_named("gradient", Setting(0, PEAK), alpha=3)


def test_the_gradient_that_is_compared_with_is_ansors_program_and_leaves_nothing_to_chance() -> None:
    """400 choices at 0.05 would be 20 by chance."""
    compared = arm_named("gradient")
    scheduler = scheduler_named(compared.scheduler, Setting(0, PEAK), **compared.parameters.get("scheduler", {}))
    now = [progress(i, [(1 + i) * 1e-3] * 4, 4) for i in range(3)]
    assert {(chosen(scheduler, now).operator, chosen(scheduler, now).rule) for _ in range(400)} == {(2, "gradient")}
    assert chosen(scheduler, now[:1]).rule == "gradient"


def test_no_two_parts_of_a_run_draw_alike() -> None:
    """Of one seed; a proposer's stream has its operator beside the seed, and that of operator 0 is the bare seed's."""
    made = [scheduler_named(name, Setting(3, PEAK)) for name in ("random", "gradient", "softmax")]
    own = [json.dumps(one.state()["rng"]) for one in made]
    others = [json.dumps(np.random.default_rng(s).bit_generator.state) for s in (3, [3, 1], [3, *b"curves"])]
    assert len({*own, *others}) == len(own) + len(others)


def test_gradient_rescues_operators_without_a_valid_configuration() -> None:
    scheduler = Gradient(0, epsilon=0.0)
    lost, found = progress(0, [INF] * 4, 2), tuned(scheduler, 1, [1e-3] * 4)
    assert chosen(scheduler, [lost, found]).rule == "rescue"
    assert chosen(scheduler, [progress(0, [INF] * 90, 9), found]).operator == 1
    slow = replace(progress(0, [INF] * 16, 1), seconds=32.0)
    assert chosen(scheduler, [slow, replace(found, seconds=found.slots * 2.0)]).operator == 1, (
        "32 s are the time of 16 slots"
    )
    assert chosen(scheduler, [slow, replace(found, slots=0, seconds=0.0)]).operator == 1, "nor before the other had one"


@pytest.mark.parametrize(("repeated", "operator"), [(0, 0), (8, 1)])
def test_what_was_timed_again_is_nobody_s_part_of_the_trials(repeated: int, operator: int) -> None:
    """Of 20 trials for two operators the first one has had six."""
    now = [progress(0, [1e-3] * 6, 3), progress(1, [1e-3], 1)]
    scheduler = scheduler_named("sequential", Setting(0, PEAK, trials=20, repeated=lambda: repeated))
    assert chosen(scheduler, now).operator == operator
