"""DynaTune against round-robin on simulated learning curves.

30 operators whose best-so-far speed follows a noisy log power with jumps; their weights and sizes spread over two
orders of magnitude, as in a convolutional network. A slot is 8 configurations and one second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from workers.engine.belief import FAST
from workers.engine.ports import Decision, Progress, Scheduler
from workers.engine.scheduler import PRODUCT_RULE, DynaTune, RoundRobin
from workers.engine.space import Operator

PEAK = 1e12
SLOT = 8
SLOTS = 240
OPERATORS = 30
SEEDS = (0, 1, 2)


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
            self.operators.append(Operator(index, f"op{index}", f"k{index}", weight, work, 0.0, work, (), ()))
            self.times.append((work / speeds_of(rng, SLOT * SLOTS)).tolist())
        self.slots = [0] * OPERATORS

    def progress(self, index: int) -> Progress:
        """One start configuration, then SLOT a slot."""
        seen = 1 + SLOT * self.slots[index]
        return Progress(self.operators[index], self.times[index][:seen], self.slots[index], seen / SLOT, False)

    def run(self, scheduler: Scheduler) -> Simulation:
        for _ in range(SLOTS):
            progress = [self.progress(i) for i in range(OPERATORS)]
            self.latency.append(sum(one.operator.weight * one.best for one in progress))
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


def play(scheduler: Callable[[int], Scheduler]) -> list[Simulation]:
    """One simulation a seed."""
    return [Simulation(seed).run(scheduler(seed)) for seed in SEEDS]


def sooner_than_round_robin(runs: list[Simulation]) -> bool:
    """The gate: the median number of slots to round-robin's final latency is at most 75 % of round-robin's.

    The paper reports 1.1 to 2.4 times over static schedules; 75 % asks for 1.33 times of the median seed. On eight
    seeds that neither the rule was chosen on nor are used here it needs 24 to 87 %, in the median 57 %.
    """
    goals = [Simulation(run.seed).run(RoundRobin()).latency[-1] for run in runs]
    return float(np.median([run.slots_until(goal) for run, goal in zip(runs, goals, strict=True)])) <= 0.75 * SLOTS


class ConstantBound(DynaTune):
    """Mutation: the index is the same for all, so that the first operator always wins."""

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`."""
        return Decision(min(one.operator.index for one in progress), "constant")

    def observe(self, progress: Progress) -> None:
        """Nothing to learn for."""


def test_dynatune_reaches_round_robins_latency_in_fewer_slots_and_mostly_by_its_belief() -> None:
    runs = play(lambda seed: DynaTune(seed, PEAK))
    assert sooner_than_round_robin(runs)
    assert float(np.mean([run.share("decided_by_belief") for run in runs])) >= 0.5
    # By chance round-robin's operator is chosen in one slot of 30.
    assert all(run.share("differs_from_round_robin") > 0.8 for run in runs)


@pytest.mark.mutation
def test_a_constant_bound_is_noticed() -> None:
    assert not sooner_than_round_robin(play(lambda seed: ConstantBound(seed, PEAK)))


@pytest.mark.mutation
def test_a_bonus_that_ignores_the_size_of_rewards_is_noticed() -> None:
    """1 ms of bonus for gains of hundredths: the paper's rule is round-robin on networks of many small operators."""
    cheap = replace(FAST, steps=24, burn=8, samples=60)
    rule = replace(PRODUCT_RULE, scale="millisecond", sampling=cheap)
    assert not sooner_than_round_robin(play(lambda seed: DynaTune(seed, PEAK, rule=rule)))
