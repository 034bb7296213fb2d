"""DynaTune, its rivals and the oracle on simulated learning curves.

30 operators whose best-so-far speed follows a noisy log power with jumps; their weights and sizes spread over two
orders of magnitude, as in a convolutional network. A slot is 8 configurations and one second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from tests.engine.test_scheduler import SPACE
from workers.engine.belief import FAST, Belief
from workers.engine.ports import Decision, Progress, Scheduler
from workers.engine.scheduler import (
    PRODUCT_RULE,
    DynaTune,
    EpsilonGreedy,
    Gradient,
    Linear,
    Oracle,
    Random,
    RoundRobin,
    Sequential,
    regret,
)
from workers.engine.space import Operator

PEAK = 1e12
SLOT = 8
SLOTS = 240
OPERATORS = 30
SEEDS = (0, 1, 2)
CHEAP = replace(FAST, steps=24, burn=8, samples=60, again=24)
QUICK = replace(PRODUCT_RULE, sampling=CHEAP)
"""The product's rule in a fifth of the time; tests/landscapes/test_scheduling_gates.py plays it with its own sampling."""


def speeds_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """Best-so-far speed (count,): log power with up to three jumps, each configuration between 30 % and 100 % of it."""
    x = np.arange(1.0, count + 1)
    ceiling, bend, slope = rng.uniform(0.05, 0.6), rng.uniform(0.0, 4.5), rng.uniform(0.4, 1.5)
    level = np.full(count, ceiling)
    for at in np.exp(rng.uniform(0, math.log(count), size=rng.integers(0, 4))):
        level[: int(at)] /= rng.uniform(1.2, 1.8)
    first = rng.uniform(0.05, 0.4)
    trend = level * (first + (1 - first) / (1 + (x / math.exp(bend)) ** -slope))
    return PEAK * np.maximum.accumulate(trend * rng.uniform(0.3, 1.0, count))


@dataclass
class Simulation:
    """Reveals hidden curves slot by slot."""

    seed: int
    latency: list[float] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.times: list[list[float]] = []
        self.operators: list[Operator] = []
        for index in range(OPERATORS):
            work = float(np.exp(rng.normal(math.log(2e7), 1.2)))
            weight = int(rng.choice([1, 1, 2, 3, 5]))
            self.operators.append(Operator(index, f"op{index}", f"k{index}", weight, work, 0.0, work, (SPACE,), ()))
            self.times.append((work / speeds_of(rng, SLOT * SLOTS)).tolist())
        self.slots = [0] * OPERATORS

    def progress(self, index: int) -> Progress:
        """One start configuration, then SLOT a slot."""
        seen = 1 + SLOT * self.slots[index]
        return Progress(self.operators[index], self.times[index][:seen], self.slots[index], seen / SLOT, False)

    def run(self, scheduler: Scheduler, slots: int = SLOTS, until: float = 0.0) -> Simulation:
        """So many slots, or fewer once the network's latency is at most `until` (s)."""
        for _ in range(slots):
            progress = [self.progress(i) for i in range(OPERATORS)]
            self.latency.append(sum(one.operator.weight * one.best for one in progress))
            if self.latency[-1] <= until:
                return self
            decision = scheduler.choose(progress, 1.0)
            assert decision is not None
            self.decisions.append(decision)
            self.slots[decision.operator] += 1
            scheduler.observe(self.progress(decision.operator))
        progress = [self.progress(i) for i in range(OPERATORS)]
        self.latency.append(sum(one.operator.weight * one.best for one in progress))
        return self

    def slots_until(self, latency: float) -> int:
        """Slots until the network is that fast; one more than there are if never."""
        return next((slot for slot, reached in enumerate(self.latency) if reached <= latency), SLOTS + 1)

    def share(self, term: str) -> float:
        return sum(bool(one.terms.get(term)) for one in self.decisions) / len(self.decisions)

    def after_slots(self) -> list[list[float]]:
        """Best time (s) of each operator after 0, 1, 2, ... slots."""
        return [times[::SLOT] for times in self.times]

    def regret(self) -> np.ndarray:
        """In seconds, after each slot."""
        weights = [operator.weight for operator in self.operators]
        return regret([one.operator for one in self.decisions], self.after_slots(), weights)


Make = Callable[[int], Scheduler]
STATIC: dict[str, Make] = {
    "round_robin": lambda seed: RoundRobin(),
    "random": Random,
    "sequential": lambda seed: Sequential(trials=SLOT * SLOTS + OPERATORS),
    "linear": lambda seed: Linear(),
}
MARGIN = {"round_robin": 0.75, "random": 0.75, "sequential": 0.75, "linear": 0.9}
"""Most slots that DynaTune may need to the final latency of a static rival, as a share of those that it had.

The paper reports 1.1 to 2.4 times over static schedules: 0.9 is its least, and 0.75 asks for 1.33 times of the median
seed. Seen on seeds 0 to 5: 0.39 of round-robin's in the median, up to 0.62.
"""


def play(make: Make) -> list[Simulation]:
    """One simulation a seed."""
    return [Simulation(seed).run(make(seed)) for seed in SEEDS]


@pytest.fixture(scope="module")
def dynatune() -> list[Simulation]:
    return play(lambda seed: DynaTune(seed, PEAK, QUICK))


@pytest.fixture(scope="module")
def rivals() -> dict[str, list[Simulation]]:
    return {name: play(make) for name, make in STATIC.items()}


def most(verdicts: Iterator[bool]) -> bool:
    """What most seeds say, and so whether their median is within a bound; asks for no more of them than settle it."""
    said = {True: 0, False: 0}
    while 2 * max(said.values()) <= len(SEEDS):
        said[next(verdicts)] += 1
    return said[True] > said[False]


def beats(make: Make, rivals: list[Simulation], margin: float) -> bool:
    """The gate: whether the median seed comes to the rival's final latency in `margin` of the slots that it had.

    Played until then, or as long as that is still open: whatever came after would not count.
    """
    slots = math.floor(margin * SLOTS)

    def ahead(seed: int, final: float) -> bool:
        return Simulation(seed).run(make(seed), slots, final).latency[-1] <= final

    return most(ahead(seed, rival.latency[-1]) for seed, rival in zip(SEEDS, rivals, strict=True))


class ConstantBound(DynaTune):
    """Mutation: the index is the same for all, so that the first operator always wins."""

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`."""
        return Decision(min(one.operator.index for one in progress), "constant")

    def observe(self, progress: Progress) -> None:
        """Nothing to learn for."""


class BonusAlone(DynaTune):
    """Mutation: nothing is expected of anybody."""

    def _index(self, one: Progress, slots: int) -> Any:
        return replace(super()._index(one, slots), reduction=0.0)


class Swapped(DynaTune):
    """Mutation: every operator has the belief of the seventh after it."""

    def belief_of(self, index: int) -> Belief:
        return self._beliefs.get((index + 7) % OPERATORS, self._beliefs[index])

    def _index(self, one: Progress, slots: int) -> Any:
        own = self._beliefs
        if one.operator.index in own:
            self._beliefs = {**own, one.operator.index: self.belief_of(one.operator.index)}
        try:
            return super()._index(one, slots)
        finally:
            self._beliefs = own


def within_margin(runs: list[Simulation], name: str, rivals: dict[str, list[Simulation]]) -> bool:
    """The gate."""
    pairs = zip(runs, rivals[name], strict=True)
    shares = [run.slots_until(rival.latency[-1]) / SLOTS for run, rival in pairs]
    return float(np.median(shares)) <= MARGIN[name]


@pytest.mark.parametrize("name", sorted(STATIC))
def test_dynatune_reaches_a_static_rivals_latency_in_fewer_slots(
    name: str, dynatune: list[Simulation], rivals: dict[str, list[Simulation]]
) -> None:
    assert within_margin(dynatune, name, rivals)


@pytest.mark.mutation
@pytest.mark.parametrize("name", sorted(STATIC))
def test_a_constant_bound_comes_to_no_static_rivals_latency(name: str, rivals: dict[str, list[Simulation]]) -> None:
    assert not within_margin(play(lambda seed: ConstantBound(seed, PEAK)), name, rivals)


def by_belief(runs: list[Simulation]) -> bool:
    """The gate."""
    decided = float(np.mean([run.share("decided_by_belief") for run in runs])) >= 0.5
    # By chance round-robin's operator is chosen in one slot of 30.
    return decided and all(run.share("differs_from_round_robin") > 0.8 for run in runs)


def test_its_choices_are_mostly_its_beliefs(dynatune: list[Simulation]) -> None:
    assert by_belief(dynatune)


@pytest.mark.mutation
def test_choices_of_the_bonus_alone_are_noticed() -> None:
    assert not by_belief([Simulation(0).run(BonusAlone(0, PEAK, QUICK))])


def faster_on_average(make: Make, rivals: list[Simulation]) -> bool:
    """The gate: whether the median seed's latency, mean of the slots, is at most 0.9 of the rival's."""
    means = (
        np.mean(Simulation(seed).run(make(seed)).latency) / np.mean(other.latency)
        for seed, other in zip(SEEDS, rivals, strict=True)
    )
    return most(bool(mean <= 0.9) for mean in means)


def test_ansors_gradient_and_epsilon_greedy_beat_taking_turns(rivals: dict[str, list[Simulation]]) -> None:
    """Appendix A and C: they are dynamic too. Seen on seeds 0 to 3: gradient needs 0.38 of round-robin's slots in the
    median. Epsilon-greedy is as fast early on (0.80 of round-robin's latency on average over the run) but hardly ever
    returns to a plateau, where jumps are that no curve foresees: 0.91 of the slots."""
    turns = rivals["round_robin"]
    assert beats(Gradient, turns, 0.75)
    assert faster_on_average(lambda seed: EpsilonGreedy(seed, PEAK, QUICK), turns)


class Level(Gradient):
    """Mutation: no operator's latency falls faster than the first one's."""

    def _steepest(self, progress: Sequence[Progress], going: Sequence[Progress]) -> Decision:
        return Decision(going[0].operator.index, "gradient")


class SwappedGreedy(Swapped, EpsilonGreedy):
    """Mutation: that of Swapped."""


@pytest.mark.mutation
def test_a_gradient_or_greed_that_sees_nothing_is_noticed(rivals: dict[str, list[Simulation]]) -> None:
    turns = rivals["round_robin"]
    assert not beats(Level, turns, 0.75)
    assert not faster_on_average(lambda seed: ConstantBound(seed, PEAK), turns)
    assert not faster_on_average(lambda seed: SwappedGreedy(seed, PEAK, QUICK), turns)


@pytest.mark.mutation
@pytest.mark.parametrize("broken", [ConstantBound, Swapped])
def test_a_broken_belief_or_bound_is_noticed(broken: type[DynaTune], rivals: dict[str, list[Simulation]]) -> None:
    """None may pass the gate; seen with seeds 0 to 3: neither is ever at round-robin's latency."""
    assert not beats(lambda seed: broken(seed, PEAK, QUICK), rivals["round_robin"], MARGIN["round_robin"])


def oracle(shift: int = 0) -> list[Simulation]:
    """The oracle with every operator's curve, or (mutation) that of the operator `shift` after it."""

    def make(seed: int) -> Oracle:
        times = Simulation(seed).times
        return Oracle({i: times[(i + shift) % OPERATORS] for i in range(OPERATORS)}, horizon=SLOTS)

    return play(make)


def never_beaten(runs: list[Simulation], others: list[list[Simulation]]) -> bool:
    """The gate: at the end no schedule of as many slots has a lower latency (1e-9 for another order of the sums)."""
    return all(
        run.latency[-1] <= (1 + 1e-9) * other[place].latency[-1] for place, run in enumerate(runs) for other in others
    )


def test_nobody_beats_the_oracle(dynatune: list[Simulation], rivals: dict[str, list[Simulation]]) -> None:
    best = oracle()
    for runs in [dynatune, *rivals.values()]:
        assert all(np.all(run.regret() >= 0) for run in runs)
        # In milliseconds of the network's latency; nobody guessed the whole schedule.
        assert all(run.regret()[-1] > 1e-6 for run in runs)
    assert all(run.regret()[-1] == pytest.approx(0, abs=1e-9) for run in best)
    assert never_beaten(best, [dynatune, *rivals.values()])


@pytest.mark.mutation
def test_an_oracle_of_wrong_curves_is_beaten(dynatune: list[Simulation], rivals: dict[str, list[Simulation]]) -> None:
    assert not never_beaten(oracle(shift=1), [dynatune, *rivals.values()])


def regrets_less(ours: list[Simulation], rivals: dict[str, list[Simulation]]) -> bool:
    """The gate: than every one of them. Mean over the slots, summed over the seeds."""
    mine, *theirs = (sum(float(run.regret().mean()) for run in runs) for runs in (ours, *rivals.values()))
    return mine < min(theirs)


def test_dynatunes_regret_is_less_than_that_of_static_schedules(
    dynatune: list[Simulation], rivals: dict[str, list[Simulation]]
) -> None:
    assert regrets_less(dynatune, rivals)


@pytest.mark.mutation
def test_the_regret_of_a_constant_bound_is_noticed(rivals: dict[str, list[Simulation]]) -> None:
    assert not regrets_less(play(lambda seed: ConstantBound(seed, PEAK)), rivals)
