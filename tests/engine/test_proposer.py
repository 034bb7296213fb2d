"""The inner search of one operator: order, learning, exhaustion, checkpoints, and whether it is worth its cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.engine.synthetic_search import CONVOLUTION, TINY, WORK, convolution, measured, reached, run
from workers.engine.cost_model import XGBoost
from workers.engine.explorer import SimulatedAnnealing
from workers.engine.history import History
from workers.engine.known import NOTHING
from workers.engine.machine import Machine
from workers.engine.methods import method
from workers.engine.ports import Candidate, CostModel, Outcome, Prediction, Sampler
from workers.engine.proposer import GuidedProposer
from workers.engine.rules import rules_penalty
from workers.engine.sampler import AdaptiveProgram, Greedy
from workers.engine.search import Search
from workers.engine.sketch_shares import SketchShares
from workers.engine.space import Configuration, Features, Operator, Sketch
from workers.messages.causes import LARGE

SEEDS = range(10)
TRIALS = 160


def made(
    seed: int = 0, operator: Operator | None = None, search: Search | None = None, sampler: Sampler | None = None
) -> GuidedProposer:
    rng = np.random.default_rng(seed)
    given = operator or convolution(), SimulatedAnnealing, sampler or Greedy(), lambda: XGBoost(seed), rng, search
    return GuidedProposer(*given)


def small(*sketches: Sketch, start: tuple[Configuration, ...] = ()) -> Operator:
    return Operator(0, "small", "small", 1, WORK, 1e6, WORK, sketches, start)


def answer(candidate: Candidate, seconds: float | None = 1e-3, **fields: str) -> Outcome:
    identity = fields.pop("identity", repr(candidate.configuration))
    return Outcome(candidate, candidate.configuration, identity, seconds, **fields)


def test_starts_come_first_then_random_then_the_explorer() -> None:
    proposer = made(search=Search(epsilon=0.0))
    first = proposer.propose(8)
    assert [c.origin for c in first] == ["start"] + ["random"] * 7
    assert first[0].configuration == proposer.operator.start[0]
    proposer.observe([measured(c) for c in first])
    assert {c.origin for c in proposer.propose(8)} == {"explorer"}


def test_a_first_plan_is_as_long_whether_an_operator_has_one_sketch_or_three() -> None:
    """Each has its part of it: with all of `first` for each, three were random for two plans more."""
    for sketches in (1, 3):
        proposer = made(operator=convolution(sketches), search=Search(first=12, epsilon=0.0))
        first = proposer.propose(18)
        assert Counter(c.origin for c in first) == {"start": 1, "random": 17}
        proposer.observe([measured(c) for c in first])
        assert {c.origin for c in proposer.propose(18)} == {"explorer"}


def test_nothing_is_proposed_twice_even_with_a_batch_in_flight() -> None:
    proposer, seen = made(operator=convolution(2)), []
    waiting = proposer.propose(8)
    for _ in range(12):
        batch = proposer.propose(8)
        proposer.observe([measured(c) for c in waiting])
        seen += [c.configuration for c in waiting]
        waiting = batch
    assert len(set(seen)) == len(seen) == 96


def test_a_read_back_configuration_is_visited_and_learned_in_place_of_the_asked_one() -> None:
    proposer = made(operator=small(TINY))
    asked = proposer.propose(1)[0]
    other = Configuration(0, ((asked.configuration.choices[0] + 1) % 3, asked.configuration.choices[1]))
    proposer.observe([replace(answer(asked), configuration=other)])
    rest = [c.configuration for c in proposer.propose(10)]
    assert len(rest) == 4
    assert other not in rest
    assert proposer.best is not None
    assert proposer.best.configuration == other


def test_epsilon_has_the_right_mean_in_small_plans() -> None:
    """After 8 first ones, 5 % of 1,600 in plans of 8 are 80 +- 9; the band is three of these."""
    proposer = made(search=Search(epsilon=0.05))
    rng = np.random.default_rng(1)
    searching = proposer._sketches[0]
    searching._guided = lambda count: ([tuple(row) for row in CONVOLUTION.random(rng, count).tolist()], 0)  # type: ignore[method-assign]
    run(proposer, 1608, plan=8)
    assert 50 < proposer.counters["random"] - 7 < 110


def test_duplicates_teach_identity_only() -> None:
    proposer = made()
    one, two, three = proposer.propose(3)
    proposer.observe([answer(one, 2e-3, identity="a"), answer(two, 1e-3, identity="a")])
    proposer.observe([answer(three, None, cause="duplicate", identity="a")])
    assert proposer.counters["duplicates"] == 2
    assert proposer.best is not None
    assert proposer.best.seconds == 2e-3


def test_a_duplicate_that_a_resumed_run_observes_again_counts_once() -> None:
    first = made()
    one, two, three = first.propose(3)
    journal = [answer(one, 2e-3, identity="a"), answer(two, 1e-3, identity="a")]
    first.observe(journal)
    resumed = made()
    resumed.restore(json.loads(json.dumps(first.state())))
    resumed.observe(journal)
    assert resumed.counters == first.counters
    resumed.observe([answer(three, None, cause="duplicate", identity="a")])
    assert resumed.counters["duplicates"] == 2


@pytest.mark.parametrize("first", [0, 8])
def test_a_sketch_that_nobody_tried_counts_as_the_best_whoever_makes_the_first_plan(first: int) -> None:
    """Chameleon samples that one too: what its sketches get must not hang on which of them has the first configuration."""
    operator = convolution(2)
    history, rng = History(operator, NOTHING), np.random.default_rng(0)
    (row,) = operator.sketches[0].random(rng, 1).tolist()
    history.add(answer(Candidate(operator.index, Configuration(0, tuple(row)), "start"), 1e-3))
    shares = dict(SketchShares(operator, history, Search(first=first), rng).of(64))
    assert shares.keys() == {0, 1}
    assert abs(shares[0] - shares[1]) <= 4


@pytest.mark.parametrize("start", [(), (Configuration(0, ()),)])
def test_a_space_of_one_configuration_finishes_at_once(start: tuple[Configuration, ...]) -> None:
    proposer = made(operator=small(Sketch(()), start=start))
    assert not proposer.exhausted
    assert len(proposer.propose(16)) == 1
    assert proposer.exhausted
    assert proposer.propose(16) == []


def test_a_small_space_is_walked_to_its_end() -> None:
    proposer = made(operator=small(TINY, Sketch(())))
    outcomes = []
    while batch := proposer.propose(2):
        outcomes += [answer(c) for c in batch]
        proposer.observe(outcomes[-len(batch) :])
    assert len(outcomes) == len({o.configuration for o in outcomes}) == 7
    assert proposer.exhausted


@pytest.mark.parametrize("cause", ["duplicate", "invalid"])
def test_a_sketch_that_gives_nothing_new_is_given_up(cause: str) -> None:
    proposer, asked = made(search=Search(patience=20)), 0
    while batch := proposer.propose(8):
        asked += len(batch)
        assert asked < 100
        proposer.observe([answer(c, None, cause=cause) for c in batch])
    assert proposer.exhausted
    assert asked == 24


def test_too_much_code_says_nothing_of_what_a_sketch_has_left() -> None:
    """What is not worth compiling now is neither a duplicate nor invalid; what is both, among it, still closes the sketch."""
    proposer = made(search=Search(patience=20))
    for _ in range(8):
        proposer.observe([answer(c, None, cause=LARGE) for c in proposer.propose(8)])
    assert not proposer.exhausted
    assert proposer.counters["duplicates"] == 0
    for cause in (LARGE, "duplicate", LARGE, "duplicate", LARGE, "invalid"):
        proposer.observe([answer(c, None, cause=cause) for c in proposer.propose(8)])
    assert proposer.exhausted


def test_the_better_sketch_gets_most_of_the_plan_and_the_other_is_not_forgotten() -> None:
    proposer = made(operator=convolution(2))
    outcomes = run(proposer, 240)
    shares = np.bincount([o.configuration.sketch for o in outcomes[120:]], minlength=2)
    assert shares[0] > 1.5 * shares[1] > 0


def test_outcomes_of_another_operator_are_refused() -> None:
    with pytest.raises(ValueError, match="route it by operator"):
        made().observe([answer(Candidate(5, Configuration(0, (0,) * 6), "random"))])


@pytest.mark.parametrize(
    ("sketches", "name", "ahead"),
    [(1, "dynatune", 0), (3, "dynatune", 0), (2, "random", 0), (2, "dynatune", 36), (2, "auto", 0)],
)
def test_run_2n_equals_run_n_state_restore_replay_run_n(sketches: int, name: str, ahead: int) -> None:
    """Also in the middle of a plan that is handed out in parts."""

    def fresh() -> GuidedProposer:
        chosen = method(name, {"search.ahead": str(ahead)} if ahead else None)
        return chosen.make_proposer(replace(convolution(sketches), machine=Machine()), 11)

    whole = fresh()
    outcomes = run(whole, 96, plan=8)
    first = fresh()
    journal = run(first, 48, plan=8)
    resumed = fresh()
    resumed.restore(json.loads(json.dumps(first.state())))
    resumed.observe(journal)
    rest = run(resumed, 48, plan=8)
    assert [o.candidate for o in journal + rest] == [o.candidate for o in outcomes]
    assert json.dumps(resumed.state()) == json.dumps(whole.state())


def random_ones(name: str, machine: Machine | None) -> list[Configuration]:
    """Of the first plan."""
    plan = method(name).make_proposer(replace(convolution(), machine=machine), 3).propose(33)
    return [one.configuration for one in plan if one.origin == "random"]


def test_auto_draws_by_the_rules_of_the_machine_where_that_is_known() -> None:
    assert random_ones("auto", None) == random_ones("dynatune", None) == random_ones("dynatune", Machine())
    by_chance, by_rules = (
        np.median(rules_penalty(CONVOLUTION, np.asarray([one.choices for one in found], dtype=np.int32), Machine()))
        for found in (random_ones("auto", None), random_ones("auto", Machine()))
    )
    assert by_rules < 0.6 * by_chance


@pytest.mark.mutation
def test_mutation_a_checkpoint_without_the_fitted_points_is_noticed() -> None:
    """With a refit at 50 % more points the last fit lies behind: forgetting it must change what is proposed."""
    search = Search(refit=0.5, refit_points=1000)
    first = made(3, search=search)
    journal = run(first, 56, plan=8)
    proposals = []
    for forget in (False, True):
        state = json.loads(json.dumps(first.state()))
        state["fitted"] = [0] if forget else state["fitted"]
        resumed = made(3, search=search)
        resumed.restore(state)
        resumed.observe(journal)
        proposals.append(resumed.propose(8))
    assert proposals[0] == first.propose(8)
    assert proposals[1] != proposals[0]


def test_what_was_in_flight_at_a_kill_is_proposed_again_first() -> None:
    first = made()
    journal = [measured(c) for c in first.propose(8)]
    first.observe(journal)
    lost = first.propose(8)
    resumed = made()
    resumed.restore(first.state())
    resumed.observe([*journal, *[measured(c) for c in lost[:3]]])
    again = resumed.propose(8)
    assert again[:5] == lost[3:]
    assert not {c.configuration for c in again[5:]} & {c.configuration for c in lost}
    assert resumed.counters["proposed"] == 8 + 8 + 3, "the five were counted before the kill"


def as_planned(parts: GuidedProposer, whole: GuidedProposer) -> bool:
    """The gate: between the parts of a plan nothing is planned, and no model fitted."""
    return all(parts.counters[name] == whole.counters[name] for name in ("walks", "fits"))


def test_a_plan_that_is_made_ahead_is_handed_out_in_parts() -> None:
    """Three plans of 32 are twelve parts of 8: nothing is planned, and no model fitted, between the parts of one."""
    search = Search(first=8, ahead=32)
    whole, parts = made(search=search), made(search=search)
    at_once, bit_by_bit = run(whole, 96, plan=32), run(parts, 96, plan=8)
    assert [o.candidate for o in bit_by_bit[:32]] == [o.candidate for o in at_once[:32]]
    assert parts.counters["proposed"] == len(bit_by_bit) == len({o.candidate.configuration for o in bit_by_bit}) == 96
    assert as_planned(parts, whole)
    with pytest.raises(ValueError, match="ahead 0 must be 1 configuration or more"):
        Search(ahead=0)


@pytest.mark.mutation
def test_mutation_without_it_every_part_is_a_plan() -> None:
    whole, parts = made(search=Search(first=8, ahead=32)), made(search=Search(first=8))
    run(whole, 96, plan=32)
    run(parts, 96, plan=8)
    assert not as_planned(parts, whole)


def test_of_a_plan_made_ahead_what_was_in_flight_at_a_kill_comes_first_and_then_the_rest() -> None:
    search = Search(ahead=32)
    first = made(search=search)
    journal = [measured(c) for c in first.propose(8)]
    first.observe(journal)
    lost = first.propose(8)
    resumed = made(search=search)
    resumed.restore(json.loads(json.dumps(first.state())))
    resumed.observe(journal)
    assert resumed.propose(16) == [*lost, *first.propose(8)]


def test_a_state_of_another_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="restore it with the operator"):
        made(operator=convolution(2)).restore(made().state())


def test_counters_add_up() -> None:
    proposer = made()
    outcomes = run(proposer, 64)
    counters = proposer.counters
    assert counters["proposed"] == len(outcomes) == counters["start"] + counters["random"] + counters["explorer"]
    assert counters["not_greedy"] == 0
    assert counters["steps"] > 0
    assert 0 < counters["reached"] <= counters["explorer"]
    assert counters["enumerated"] == 0
    assert counters["fits"] == 3


@pytest.mark.mutation
def test_mutation_an_explorer_that_does_not_see_the_score_reaches_nothing() -> None:
    class Blind(SimulatedAnnealing):
        def explore(self, sketch, score, count, visited):  # type: ignore[no-untyped-def]
            return super().explore(sketch, lambda choices: np.zeros(len(choices)), count, visited)

    proposer = GuidedProposer(convolution(), Blind, Greedy(), lambda: XGBoost(0), np.random.default_rng(0))
    run(proposer, 64)
    assert proposer.counters["explorer"] > proposer.counters["reached"] == 0


class Last(Greedy):
    """Takes the other end of what it is handed."""

    def sample(self, sketch, candidates, scores, count, visited):  # type: ignore[no-untyped-def]
        return candidates[-count:]


@pytest.mark.mutation
@pytest.mark.parametrize("sampler", [Greedy, Last])
def test_mutation_an_explorer_that_returns_its_starts_reaches_nothing_whatever_the_sampler_takes(
    sampler: type[Greedy],
) -> None:
    class Still(SimulatedAnnealing):
        def explore(self, sketch, score, count, visited):  # type: ignore[no-untyped-def]
            _, steps = super().explore(sketch, score, count, visited)
            return self.begun, steps

    search = Search(pool=4.0)
    proposer = GuidedProposer(convolution(), Still, sampler(), lambda: XGBoost(0), np.random.default_rng(0), search)
    run(proposer, 64)
    assert proposer.counters["explorer"] > proposer.counters["reached"] == 0
    assert (proposer.counters["not_greedy"] > 0) == (sampler is Last)


def test_candidates_of_a_sketch_that_is_scored_whole_are_no_walk_s() -> None:
    proposer = made(operator=small(TINY), search=Search(first=2, epsilon=0.0))
    proposer.observe([answer(c) for c in proposer.propose(2)])
    assert len(proposer.propose(16)) == 4
    assert proposer.counters["enumerated"] == proposer.counters["explorer"] == 4
    assert proposer.counters["reached"] == 0


def test_a_sampler_that_leaves_the_greedy_choice_is_counted() -> None:
    search = Search(pool=4.0, epsilon=0.0)
    proposer = GuidedProposer(
        convolution(), SimulatedAnnealing, Last(), lambda: XGBoost(0), np.random.default_rng(0), search
    )
    run(proposer, 64)
    assert proposer.counters["not_greedy"] == proposer.counters["explorer"] > 0


class Few(Greedy):
    """Finds that `TAKEN` candidates stand for all."""

    TAKEN = 3

    def sample(self, sketch, candidates, scores, count, visited):  # type: ignore[no-untyped-def]
        self.figures = {"clusters": self.TAKEN, "synthesised": 1}
        return candidates[: min(count, self.TAKEN)]


def sparing(operator: Operator, **search: float) -> GuidedProposer:
    numbers = Search(**{"pool": 4.0, "epsilon": 0.0, **search})  # type: ignore[arg-type]
    return GuidedProposer(operator, SimulatedAnnealing, Few(), lambda: XGBoost(0), np.random.default_rng(0), numbers)


def test_what_a_sampler_leaves_out_is_not_replaced() -> None:
    proposer = sparing(convolution())
    proposer.observe([measured(c) for c in proposer.propose(8)])
    plans = [proposer.propose(16) for _ in range(4)]
    assert [[c.origin for c in plan] for plan in plans] == [["explorer"] * 3] * 4
    assert proposer.counters["left_out"] == 4 * 13
    assert proposer.counters["clusters"] == 4 * 3
    assert proposer.counters["synthesised"] == proposer.counters["walks"] == 4


def test_of_a_plan_that_a_sampler_thinned_chance_has_its_share() -> None:
    proposer = sparing(convolution(), epsilon=0.25)
    proposer.observe([measured(c) for c in proposer.propose(8)])
    assert Counter(c.origin for c in proposer.propose(16)) == {"explorer": 3, "random": 1}
    assert proposer.counters["left_out"] == 9, "by the sampler; the three others were chance's"


def test_every_sketch_spares_its_own_and_the_others_do_not_fill_up() -> None:
    proposer = sparing(convolution(2))
    while min(len(seen.speeds) for seen in proposer._history.sketches) < 8:
        proposer.observe([measured(c) for c in proposer.propose(8)])
    plan = proposer.propose(16)
    assert {c.origin for c in plan} == {"explorer"}
    assert max(Counter(c.configuration.sketch for c in plan).values()) == 3


def test_what_the_explorer_cannot_supply_is_filled_by_chance() -> None:
    class Lame(SimulatedAnnealing):
        def explore(self, sketch, score, count, visited):  # type: ignore[no-untyped-def]
            found, steps = super().explore(sketch, score, count, visited)
            return found[:5], steps

    search = Search(epsilon=0.0)
    proposer = GuidedProposer(convolution(), Lame, Greedy(), lambda: XGBoost(0), np.random.default_rng(0), search)
    proposer.observe([measured(c) for c in proposer.propose(8)])
    assert Counter(c.origin for c in proposer.propose(16)) == {"explorer": 5, "random": 11}
    assert proposer.counters["left_out"] == 0


def test_an_exhausted_sketch_leaves_its_place_to_the_others() -> None:
    proposer = made(operator=replace(convolution(), sketches=(TINY, CONVOLUTION)))
    for _ in range(8):
        plan = proposer.propose(16)
        assert len(plan) == 16
        proposer.observe([answer(c) for c in plan])


@pytest.mark.mutation
def test_mutation_a_proposer_that_fills_up_by_chance_is_noticed() -> None:
    proposer = sparing(convolution())
    searching = proposer._sketches[0]
    guided = searching._guided
    searching._guided = lambda count: (guided(count)[0], 0)  # type: ignore[method-assign]
    proposer.observe([measured(c) for c in proposer.propose(8)])
    assert Counter(c.origin for c in proposer.propose(16)) == {"explorer": 3, "random": 13}


class Shuffled:
    """Boosted trees whose opinions are dealt to the wrong candidates."""

    def __init__(self, seed: int) -> None:
        self._model, self._rng = XGBoost(seed), np.random.default_rng(seed)

    def fit(self, features: Features, speeds: np.ndarray) -> None:
        self._model.fit(features, speeds)

    def predict(self, features: Features) -> Prediction:
        opinion = self._model.predict(features)
        return Prediction(self._rng.permutation(opinion.mean), opinion.spread)

    def tabled(self, *given: object) -> None:
        """Dealt anew at every call."""


@cache
def by_chance(seed: int) -> float:
    """What random search comes to, in FLOP/s."""
    rival = method("random").make_proposer(convolution(), seed)
    run(rival, TRIALS)
    return reached(rival)


def clearly_wins(cost_model: Callable[[int], CostModel]) -> bool:
    """The gate: whether the guided search ends 15 % above random search with the same trials on eight seeds of ten.

    Measured over 30 seeds: random search ends at 45 +-9 GFLOP/s, the guided one at 82, of a best of 89, and wins all
    30. Shuffled predictions win 4 of 10. Eight of ten leaves room for two lucky rivals. The eighth that is won and the
    third that is lost settle it: no more are played.
    """
    wins = losses = 0
    for seed in SEEDS:
        guided = GuidedProposer(
            convolution(),
            lambda rng: SimulatedAnnealing(rng, steps=60),
            Greedy(),
            lambda seed=seed: cost_model(seed),  # type: ignore[misc]
            np.random.default_rng(seed),
        )
        run(guided, TRIALS)
        won = reached(guided) > 1.15 * by_chance(seed)
        wins, losses = wins + won, losses + (not won)
        if wins == 8 or losses == 3:
            break
    return wins == 8


def test_trees_and_annealing_clearly_beat_random_search() -> None:
    assert clearly_wins(XGBoost)


@pytest.mark.mutation
def test_mutation_shuffled_predictions_fail_the_gate() -> None:
    assert not clearly_wins(Shuffled)


def test_what_a_sampler_draws_by_chance_is_no_work_of_explorer_and_sampler() -> None:
    """Of each plan of the 8 clusters of 8 candidates the last three."""
    proposer = made(search=Search(first=8, epsilon=0.0, pool=8.0), sampler=AdaptiveProgram(0))
    outcomes = run(proposer, 8, plan=8)
    guided = [measured(candidate) for _ in range(4) for candidate in proposer.propose(8)]
    origins = Counter(outcome.candidate.origin for outcome in guided)
    assert origins["random"] >= 4 * 3
    assert origins["explorer"] == proposer.counters["explorer"] == proposer.counters["synthesised"] > 0
    assert proposer.counters["not_greedy"] <= origins["explorer"]
    assert proposer.counters["chance"] == origins["random"]
    assert proposer.counters["random"] == origins["random"] + sum(o.candidate.origin == "random" for o in outcomes)
