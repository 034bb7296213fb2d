"""Knowledge of earlier runs: good configurations first, a taught cost model, and nothing of it in this run's figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION, WORK, convolution, measured, run, speed
from workers.engine.history import History
from workers.engine.known import ALIKE, STARTS, Known, Point, known_points, space_of
from workers.engine.methods import method
from workers.engine.proposer import GuidedProposer
from workers.engine.space import Configuration, Knob, Operator, Sketch

OPERATOR = convolution()


def point(configuration: Configuration) -> Point:
    found = speed(configuration)
    return Point(configuration, WORK / found if found else None, repr(configuration))


def drawn(count: int, seed: int = 5) -> Known:
    """Random points of the landscape."""
    rows = CONVOLUTION.unvisited(np.random.default_rng(seed), count, set())
    return Known(tuple(point(Configuration(0, tuple(row))) for row in rows.tolist()))


def proposer(known: Known = Known(), operator: Operator = OPERATOR, seed: int = 3) -> GuidedProposer:  # noqa: B008  (frozen)
    return method("round_robin").make_proposer(operator, seed, known)


def recorded(known: Known, **changes: Any) -> dict[str, Any]:
    points = [[p.configuration.sketch, list(p.configuration.choices), p.seconds, p.identity] for p in known.points]
    return {"key": OPERATOR.key, "space": space_of(OPERATOR.sketches), "points": points, **changes}


def test_the_best_known_are_a_plan_of_their_own_and_the_rest_never_proposed() -> None:
    known, taught = drawn(60), proposer(drawn(60))
    fast = sorted((p for p in known.points if p.seconds), key=lambda p: p.seconds or 0)
    plans = [taught.propose(1), taught.propose(40), taught.propose(40)]
    first, second, rest = ([candidate.configuration for candidate in plan] for plan in plans)
    assert first + second == [p.configuration for p in fast[:STARTS]]
    assert len(rest) == 40
    assert not set(rest) & {p.configuration for p in known.points}


def test_who_has_many_points_had_the_rules_configurations_first() -> None:
    """Of those that were slow no record need be left, and each run would try them again."""
    few, many = drawn(STARTS), drawn(60)
    rules = [Configuration(0, tuple(int(size) - 1 for size in CONVOLUTION.sizes))]
    assert few.tried_first(rules)[-1] == rules[0]
    assert many.tried_first(rules) == many.starts


def test_the_cost_model_is_asked_before_anything_is_measured() -> None:
    taught, fresh = proposer(drawn(60)), proposer()
    plans = {p: [*p.propose(STARTS + 1), *p.propose(24)][STARTS + 1 :] for p in (taught, fresh)}
    assert {c.origin for c in plans[taught]} == {"explorer", "random"}
    assert {c.origin for c in plans[fresh]} == {"random"}
    typical = {p: np.median([speed(c.configuration) for c in plan]) for p, plan in plans.items()}
    assert typical[taught] > 8 * typical[fresh]


def test_what_is_known_is_no_figure_of_this_run() -> None:
    known = drawn(60)
    taught = proposer(known)
    assert taught.best is None
    assert all(count == 0 for count in taught.counters.values())
    first = taught.propose(1)
    slower = replace(measured(first[0]), seconds=1.0)
    taught.observe([slower])
    assert taught.best == slower


def test_a_start_that_is_measured_again_is_measured_once() -> None:
    taught = proposer(drawn(60))
    found = [o.candidate.configuration for o in run(taught, 96)]
    assert len(set(found)) == 96


def test_a_space_that_is_known_whole_is_searched_no_further_than_its_best() -> None:
    sketch = Sketch((Knob("unroll", "category", tuple((2**n,) for n in range(10))),))
    operator = replace(OPERATOR, sketches=(sketch,), start=(Configuration(0, (9,)),))
    known = Known(tuple(Point(Configuration(0, (n,)), 1.0 + n, str(n)) for n in range(10)))
    taught = proposer(known, operator)
    assert [c.configuration.choices for c in taught.propose(10)] == [(n,) for n in range(STARTS)]
    assert taught.exhausted


def test_equal_programs_are_one_start() -> None:
    known = Known(tuple(Point(Configuration(0, (n,)), 1.0 + n / 10, "same" if n < 3 else str(n)) for n in range(6)))
    assert [start.choices for start in known.starts] == [(0,), (3,), (4,), (5,)]
    assert known.settled == set()


@pytest.mark.parametrize(("step", "count"), [(0.01, STARTS), (0.04, 3), (0.06, 2), (0.2, 1)])
def test_programs_that_may_be_the_fastest_contend(step: float, count: int) -> None:
    known = Known(tuple(Point(Configuration(0, (n,)), 1.0 + n * step, str(n)) for n in range(6)))
    assert known.contenders == count
    assert Known().contenders == 0


def test_records_reach_the_operator_of_their_key_and_space() -> None:
    known = drawn(20)
    assert known_points([recorded(known)], [OPERATOR], [space_of(OPERATOR.sketches)]) == {0: known}
    others = [recorded(drawn(20 + number, 6 + number), key=str(number)) for number in range(ALIKE + 1)]
    assert known_points([*others, recorded(known)], [OPERATOR], [space_of(OPERATOR.sketches)]) == {0: known}


def test_without_records_of_its_own_an_operator_hears_of_those_with_its_knobs() -> None:
    """Of two here as of one object each: they lend once."""
    others = [drawn(20 + number, 6 + number) for number in range(ALIKE + 1)]
    records = [recorded(known, key=str(number)) for number, known in enumerate(others)]
    twin = replace(OPERATOR, index=1)
    found = known_points(records, [OPERATOR, twin], [space_of(OPERATOR.sketches)] * 2)
    assert found[0] == found[1] == Known(alike=tuple(others[:0:-1]))  # those of the most points
    assert all(one is other for one, other in zip(found[0].alike, found[1].alike, strict=True))


def test_operators_without_tiles_are_alike_in_nothing_that_matters() -> None:
    sketch = Sketch((Knob("unroll", "category", tuple((2**n,) for n in range(10))),))
    operator = replace(OPERATOR, sketches=(sketch,))
    points = [[0, [n], 1.0 + n, str(n)] for n in range(10)]
    record = {"key": "another", "space": space_of(operator.sketches), "points": points}
    assert known_points([record], [operator], [space_of(operator.sketches)]) == {}
    assert known_points([{**record, "key": operator.key}], [operator], [space_of(operator.sketches)])


def test_the_best_of_others_with_its_knobs_are_tried_after_one_of_its_own_and_the_rest_may_be() -> None:
    others = (drawn(60, 6), drawn(60, 7))
    fastest = [min((p for p in known.points if p.seconds), key=lambda p: p.seconds or 0) for known in others]
    own = [Configuration(0, tuple(row)) for row in CONVOLUTION.unvisited(np.random.default_rng(1), 3, set()).tolist()]
    one = proposer(Known(alike=others), replace(OPERATOR, start=tuple(own)))
    asked = [candidate.configuration for candidate in one.propose(5)]
    assert asked == [own[0], *(point.configuration for point in fastest), *own[1:]]
    history = History(OPERATOR, Known(alike=others))
    assert not any(history.is_visited(point.configuration) for known in others for point in known.points)


@pytest.mark.parametrize("change", ["machine", "options", "order of knobs", "name"])
def test_records_of_another_space_are_passed_over(change: str) -> None:
    sketch = {
        "machine": CONVOLUTION,
        "options": Sketch((*CONVOLUTION.knobs[:-1], replace(CONVOLUTION.knobs[-1], options=((-1,), (2,), (6,))))),
        "order of knobs": Sketch((CONVOLUTION.knobs[1], CONVOLUTION.knobs[0], *CONVOLUTION.knobs[2:])),
        "name": Sketch((replace(CONVOLUTION.knobs[0], name="g"), *CONVOLUTION.knobs[1:])),
    }[change]
    operator = replace(OPERATOR, sketches=(sketch,))
    machine = ({"kind": "llvm"}, 2, "0.27") if change == "machine" else ()
    assert known_points([recorded(drawn(20))], [operator], [space_of(operator.sketches, *machine)]) == {}


def test_points_outside_the_space_and_records_without_a_valid_one_are_dropped() -> None:
    record = recorded(drawn(4))
    outside = [[0, [10**6] * 6, 1e-9, "x"], [7, [0] * 6, 1e-9, "y"], [0, [0], 1e-9, "z"], [-1, [0] * 6, 1e-9, "w"]]
    found = known_points(
        [{**record, "points": [*outside, *record["points"]]}], [OPERATOR], [space_of(OPERATOR.sketches)]
    )
    assert len(found[0].points) == 4
    failed = [[0, [0] * 6, None, ""]]
    assert known_points([{**record, "points": failed}], [OPERATOR], [space_of(OPERATOR.sketches)]) == {}


def test_failures_are_known_too() -> None:
    known = Known((Point(Configuration(0, (0,) * 6), None), Point(Configuration(0, (1,) * 6), 0.5, "i")))
    history = History(OPERATOR, known)
    assert history.sketches[0].speeds == [0.0, WORK / 0.5]
    assert history.is_visited(Configuration(0, (0,) * 6))
    assert not history.is_visited(Configuration(0, (1,) * 6))


@pytest.mark.mutation
def test_records_with_shuffled_times_are_noticed() -> None:
    known = drawn(60)
    order = np.random.default_rng(0).permutation(len(known.points))
    wrong = Known(tuple(replace(p, seconds=known.points[i].seconds) for p, i in zip(known.points, order, strict=True)))
    best = {}
    for name, points in (("true", known), ("shuffled", wrong)):
        best[name] = max(speed(c.configuration) for c in proposer(points).propose(24))
    assert best["true"] > 1.5 * best["shuffled"]
