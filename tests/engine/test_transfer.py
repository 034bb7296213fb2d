"""Similar operators teach each other; others do not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.engine.synthetic_search import CONVOLUTION, TINY, WORK, convolution, speed, tile
from workers.engine import fitted_model
from workers.engine.cost_model import XGBoost
from workers.engine.history import History
from workers.engine.known import Known, Point
from workers.engine.methods import method
from workers.engine.ports import Candidate, Outcome
from workers.engine.proposer import GuidedProposer
from workers.engine.search import Search
from workers.engine.space import Configuration, Knob, Operator, Sketch
from workers.engine.transfer import LEAST, LOANS, Neighbours, extents, placed


def sized(index: int, channels: int, pixels: int) -> Operator:
    """A convolution of other extents."""
    knobs = (tile("f", channels, 4), tile("y", pixels, 4), tile("x", pixels, 4), *CONVOLUTION.knobs[3:])
    return replace(convolution(), index=index, sketches=(Sketch(knobs),))


LARGE, SMALL, MIDDLE = sized(0, 512, 56), sized(1, 128, 28), sized(2, 256, 28)


def seconds_of(operator: Operator, configuration: Configuration) -> float | None:
    """The rules of `synthetic_search.speed`, on tiles of this operator; each has a scale of its own."""
    found = speed(configuration, knobs=operator.sketches[0].knobs)
    return (1 + operator.index) * WORK / found if found else None


def measured(operator: Operator, count: int, seed: int = 4) -> Known:
    rows = operator.sketches[0].unvisited(np.random.default_rng(seed), count, set())
    found = [Configuration(0, tuple(row)) for row in rows.tolist()]
    return Known(tuple(Point(c, seconds_of(operator, c), repr(c)) for c in found))


def neighbours(*operators: Operator, count: int = 100) -> Neighbours:
    made = Neighbours()
    for operator in operators:
        made.join(operator, History(operator, measured(operator, count)))
    return made


def proposer(
    operator: Operator, around: Neighbours | None = None, transfer: int = 128, twins: bool = False
) -> GuidedProposer:
    chosen = method("round_robin")
    search = {**chosen.parameters.get("search", {}), "transfer": transfer, "twins": twins}
    return replace(chosen, parameters={**chosen.parameters, "search": search}).make_proposer(
        operator, 3, neighbours=around
    )


def answered(candidate: Candidate, operator: Operator) -> Outcome:
    seconds = seconds_of(operator, candidate.configuration)
    return Outcome(
        candidate, candidate.configuration, repr(candidate.configuration), seconds, cause="" if seconds else "build"
    )


def with_points(one: GuidedProposer, count: int, seed: int = 6) -> GuidedProposer:
    for point in measured(one.operator, count, seed).points:
        one.observe([answered(Candidate(one.operator.index, point.configuration, "random"), one.operator)])
    return one


def test_after_its_first_points_a_search_follows_what_similar_operators_found() -> None:
    """Medians over plans of three seeds, 16 candidates each."""
    typical = {}
    for name, around in (("taught", neighbours(SMALL, MIDDLE)), ("alone", Neighbours())):
        plans = [with_points(proposer(LARGE, around), 10, seed).propose(17) for seed in range(3)]
        found = [speed(c.configuration) for plan in plans for c in plan if c.origin == "explorer"]
        typical[name] = np.median(found)
    assert typical["taught"] > 1.5 * typical["alone"]


def of_earlier_runs(*known: Known) -> GuidedProposer:
    """A search of LARGE that hears of others with its knobs."""
    return method("auto").make_proposer(LARGE, 3, Known(alike=known))


def test_what_earlier_runs_found_of_others_with_its_knobs_is_lent_after_the_first_points() -> None:
    lenders = measured(LARGE, 100, 8), measured(LARGE, 100, 9)
    one, again = of_earlier_runs(*lenders), of_earlier_runs(*lenders)
    with_points(one, 10)
    answers = [answered(candidate, LARGE) for candidate in one.propose(17)]
    assert one.state()["loans"] == [[[-1, 0, 100], [-2, 0, 100]]]
    one.observe(answers)
    again.restore(json.loads(json.dumps(one.state())))
    with_points(again, 10).observe(answers)
    assert again.propose(16) == one.propose(16)


@pytest.mark.parametrize("left", [0, 1])
def test_a_resume_whose_lenders_were_deleted_learns_from_those_that_are_left(left: int) -> None:
    lenders = measured(LARGE, 100, 8), measured(LARGE, 60, 9)
    one, again = of_earlier_runs(*lenders), of_earlier_runs(*lenders[:left])
    answers = [answered(candidate, LARGE) for candidate in with_points(one, 10).propose(17)]
    one.observe(answers)
    again.restore(json.loads(json.dumps(one.state())))
    with_points(again, 10).observe(answers[:2])  # too few for another fit on account of them
    again.propose(40)
    assert again.state()["loans"] == [[[-1, 0, 100]][:left]]


def test_of_two_operators_with_the_same_knobs_each_hears_of_the_same_lender_once() -> None:
    around, lender = Neighbours(), measured(LARGE, 100, 8)
    twin = replace(LARGE, index=7)
    for operator in (LARGE, twin):
        around.join(operator, History(operator))
        around.lend(operator, lender)
    assert around.earlier(0, 0) == around.earlier(7, 0) == ((-1, 0, 100),)
    assert around.loans(0, LARGE.sketches[0]) == (), "they are lent by `earlier` alone"
    assert around.earlier(SMALL.index, 0) == ()
    assert not around.holds(SMALL.index, (-1, 0, 100))
    assert not around.holds(0, (-1, 0, 101))


@pytest.mark.mutation
def test_shuffled_records_of_others_are_not_listened_to() -> None:
    others = measured(LARGE, 100, 8)
    order = np.random.default_rng(2).permutation(100)
    wrong = Known(
        tuple(replace(p, seconds=others.points[i].seconds) for p, i in zip(others.points, order, strict=True))
    )
    one = with_points(of_earlier_runs(wrong), 24)
    one.propose(4)
    assert one.state()["loans"] == [[]]


def test_operators_that_foretell_nothing_are_not_listened_to() -> None:
    around = neighbours(SMALL, MIDDLE)
    for history in around._histories.values():
        speeds = history.sketches[0].speeds
        speeds[:] = np.random.default_rng(2).permutation(speeds).tolist()
    one = with_points(proposer(LARGE, around), 24)
    one.propose(4)
    assert one.state()["loans"] == [[]]


def test_a_run_of_similar_operators_is_better_for_it() -> None:
    """After 24 trials each, in turn; the mean gain of five seeds was 0.16 in log2, all of them positive."""
    gains = []
    for seed in range(3):
        reached = {}
        for transfer in (0, 128):
            around, total = Neighbours(), 0.0
            proposers = []
            for operator in (LARGE, SMALL, MIDDLE):
                search = Search(transfer=transfer)
                chosen = replace(method("round_robin"), parameters={"search": vars(search)})
                proposers.append(chosen.make_proposer(operator, seed, neighbours=around))
            for _ in range(3):
                for one in proposers:
                    one.observe([answered(candidate, one.operator) for candidate in one.propose(8)])
            for one in proposers:
                assert one.best is not None
                assert one.best.seconds is not None
                total += np.log2(one.best.seconds)
            reached[transfer] = total / 3
        gains.append(reached[0] - reached[128])
    assert np.mean(gains) > 0.05, gains


def test_only_sketches_of_one_shape_lend_and_only_once_they_know_something() -> None:
    around = neighbours(SMALL, count=LEAST - 1)
    assert around.loans(0, LARGE.sketches[0]) == ()
    around = neighbours(SMALL)
    assert around.loans(0, TINY) == ()
    around = neighbours(SMALL, MIDDLE, count=LEAST)
    assert around.loans(0, LARGE.sketches[0]) == ((1, 0, LEAST), (2, 0, LEAST))
    assert around.loans(1, SMALL.sketches[0]) == ((2, 0, LEAST),)


def test_loans_are_bounded_relative_and_the_same_whenever_they_are_called_in() -> None:
    around = Neighbours()
    history = History(SMALL, measured(SMALL, 400))
    around.join(SMALL, history)
    around.join(MIDDLE, History(MIDDLE, measured(MIDDLE, 400)))
    loans = around.loans(0, LARGE.sketches[0])
    features, speeds = around.points(loans)
    assert len(speeds) == len(features) <= LOANS
    assert speeds.max() <= 1.0
    assert (
        features.shape[1] == placed(LARGE.sketches[0], LARGE.sketches[0].random(np.random.default_rng(1), 2)).shape[1]
    )
    found = Configuration(0, (0,) * len(CONVOLUTION.knobs))
    history.add(Outcome(Candidate(1, found, "explorer"), found, "new", 1e-9))
    assert (around.points(loans)[1] == speeds).all()


def test_own_points_take_over() -> None:
    around = neighbours(SMALL)
    alone, taught = proposer(LARGE, transfer=0), proposer(LARGE, around, transfer=16)
    for one in (alone, taught):
        for configuration in measured(LARGE, 40).points:
            candidate = Candidate(0, configuration.configuration, "random")
            one.observe([answered(candidate, LARGE)])
    rows = LARGE.sketches[0].random(np.random.default_rng(9), 50)
    opinions = [one._sketches[0].model.predict(rows).mean for one in (taught, alone)]
    assert (opinions[0] == opinions[1]).all()


@pytest.mark.parametrize("lenders", [(), (SMALL, MIDDLE)], ids=["alone", "taught"])
def test_a_walk_hears_the_same_of_a_table(lenders: tuple[Operator, ...]) -> None:
    """From its third call on, but for calls of many."""
    model = with_points(proposer(LARGE, neighbours(*lenders), transfer=128), 40)._sketches[0].model
    opinion, _ = model.frozen()
    assert bool(model.loans) == bool(lenders)
    rng = np.random.default_rng(9)
    for count in (50, 2000, 50, 50, 50, 2000):
        rows = LARGE.sketches[0].random(rng, count)
        assert opinion(rows).mean == pytest.approx(model.predict(rows).mean, abs=1e-4)


@pytest.mark.mutation
def test_mutation_a_table_with_the_extents_of_another_operator_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_points(proposer(LARGE, neighbours(SMALL, MIDDLE), transfer=128), 40)._sketches[0].model
    opinion, _ = model.frozen()
    monkeypatch.setattr(fitted_model, "extents", lambda sketch: 0 * extents(sketch))
    rows = LARGE.sketches[0].random(np.random.default_rng(9), 50)
    told = [opinion(rows).mean for _ in range(4)]
    assert np.abs(told[3] - told[0]).max() > 1e-2


def test_without_transfer_nothing_is_borrowed() -> None:
    plan = proposer(LARGE, neighbours(SMALL, MIDDLE), transfer=0).propose(20)
    assert {c.origin for c in plan} == {"start", "random"}


def test_a_restored_proposer_borrows_what_it_had_borrowed() -> None:
    def history() -> History:
        return History(SMALL, measured(SMALL, 60))

    around = Neighbours()
    lender = history()
    around.join(SMALL, lender)
    whole = proposer(LARGE, around)
    outcomes = [answered(c, LARGE) for c in whole.propose(12)]
    whole.observe(outcomes)
    whole.observe(more := [answered(c, LARGE) for c in whole.propose(12)])
    assert whole.state()["loans"] == [[[1, 0, 60]]]
    state = json.loads(json.dumps(whole.state()))
    late = measured(SMALL, 90, seed=8).points
    news = [Outcome(Candidate(1, p.configuration, "random"), p.configuration, p.identity, p.seconds) for p in late]
    for outcome in news:
        lender.add(outcome)
    again = Neighbours()
    second = history()
    again.join(SMALL, second)
    resumed = proposer(LARGE, again)
    resumed.restore(state)
    for outcome in news:
        second.add(outcome)
    resumed.observe(outcomes + more)
    for _ in range(3):
        plans = [one.propose(8) for one in (whole, resumed)]
        assert plans[0] == plans[1]
        for one in (whole, resumed):
            one.observe([answered(c, LARGE) for c in plans[0]])


@pytest.mark.mutation
def test_lenders_with_shuffled_speeds_are_noticed() -> None:
    rows = LARGE.sketches[0].unvisited(np.random.default_rng(11), 200, set())
    truth = [speed(Configuration(0, tuple(row))) for row in rows.tolist()]
    around = neighbours(SMALL, MIDDLE)
    order = {}
    for name in ("true", "shuffled"):
        if name == "shuffled":
            for history in around._histories.values():
                speeds = history.sketches[0].speeds
                speeds[:] = np.random.default_rng(2).permutation(speeds).tolist()
        model = XGBoost(1)
        model.fit(*around.points(around.loans(0, LARGE.sketches[0])))
        order[name] = spearmanr(model.predict(placed(LARGE.sketches[0], rows)).mean, truth)[0]
    assert order["true"] > 0.5 > 0.3 > order["shuffled"]


def test_twins_try_each_others_best_and_each_of_them_once() -> None:
    around = Neighbours()
    twin, other = replace(LARGE, index=3), proposer(SMALL, around, twins=True)
    first, second = proposer(LARGE, around, twins=True), proposer(twin, around, twins=True)
    assert second.borrowed(9) == []
    with_points(first, 20)
    assert first.best is not None
    (lent,) = second.borrowed(9)
    assert (lent.operator, lent.configuration, lent.origin) == (3, first.best.configuration, "twin")
    second.observe([answered(lent, twin)])
    assert (second.borrowed(9), first.borrowed(9), other.borrowed(9)) == ([], [], [])
    assert lent.configuration not in {candidate.configuration for candidate in second.propose(16)}


def test_a_twin_s_best_waits_until_what_earlier_runs_found_is_measured() -> None:
    around, twin = Neighbours(), replace(LARGE, index=3)
    chosen = replace(method("round_robin"), parameters={"search": {"twins": True}})
    first = chosen.make_proposer(LARGE, 3, neighbours=around)
    second = chosen.make_proposer(twin, 3, measured(twin, 60), around)
    first.observe([answered(candidate, LARGE) for candidate in first.propose(8)])
    second.observe([answered(candidate, twin) for candidate in second.propose(1)])
    assert second.borrowed(9) == []
    second.observe([answered(candidate, twin) for candidate in second.propose(8)])
    assert [candidate.origin for candidate in second.borrowed(9)] == ["twin"]


def test_without_twins_nothing_is_tried_for_others() -> None:
    around = Neighbours()
    alone = proposer(replace(LARGE, index=3), around)
    with_points(proposer(LARGE, around), 20)
    assert alone.borrowed(9) == []


def test_operators_that_only_choose_among_programs_are_no_twins() -> None:
    """Two of them may be a Softmax and a mean."""
    around = Neighbours()
    chosen = Sketch((Knob("structure", "category", ((0,), (1,))),))
    mean, softmax = (replace(LARGE, index=index, sketches=(chosen,), start=()) for index in (3, 4))
    first, second = proposer(mean, around, twins=True), proposer(softmax, around, twins=True)
    found = [Outcome(one, one.configuration, repr(one.configuration), 1.0) for one in first.propose(2)]
    first.observe(found)
    assert first.best is not None
    assert second.borrowed(9) == []
    assert around.loans(4, chosen) == ()
