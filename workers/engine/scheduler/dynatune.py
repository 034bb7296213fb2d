"""DynaTune's scheduler: an upper confidence bound on the latency a slot is expected to take off the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.engine.belief import FAST, PAPER, Belief, Sampling
from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.setting import active, next_in_circle

GAMMA = 1e12
"""Index in ms of an operator that never had a slot: above anything an estimate can reach."""


@dataclass(frozen=True)
class Rule:
    """The parameters of the index u = r + scale x sqrt(C ln t / c), in ms.

    `scale` is the size of a reward, which Auer et al. (2002) take to be at most 1:
      "millisecond"  1 ms whatever the network: DynaTune's rule as written.
      "spread"       the standard deviation of the operator's own reward, the factor of UCB1-NORMAL (Auer et al. 2002)
                     and UCB-V (Audibert et al. 2009), in ms. It joins the posterior's spread, what the curve may still
                     do, and that of a jump, which no curve foresees: a jump takes `surprise` of the operator's time
                     off (1/6 at 20 % faster, 1/3 at 50 %) with probability p, so its spread is
                     `surprise` x sqrt(p (1 - p)) x weight x best, with p from `Belief.jump_chance`.
    With 30 operators and a network of 3 ms, sqrt(2 ln t / c) is 1 to 2 ms while a slot brings 0.01 to 0.1 ms, so the
    rule as written is round-robin there; hence "spread" for the product. Without the jumps (`surprise` 0) an operator
    on a plateau is hardly ever tried again: on simulated curves that takes half again as many slots.
    """

    scale: str = "spread"
    surprise: float = 1 / 3
    c: float = 2.0
    c_fast: float = 0.2
    fast_latency: float = 1e-3
    patience: int | None = None
    rescue: int = 4
    sampling: Sampling = FAST

    def __post_init__(self) -> None:
        if self.scale not in ("millisecond", "spread"):
            raise ValueError(f"scale {self.scale!r} is unknown; use 'millisecond' or 'spread'")


PRODUCT_RULE = Rule(c_fast=2.0)
"""The bonus follows the size of the rewards, so that C = 2 needs no exception for fast networks."""

PAPER_RULE = Rule(scale="millisecond", surprise=0.0, patience=200, sampling=PAPER)
"""DynaTune 4.2 and 5: C = 2, or 0.2 under 1 ms; finished after 200 configurations without improvement."""


@dataclass(frozen=True)
class _Index:
    """Terms of one operator, in ms: expected reduction, bonus, and whether it never had a slot."""

    operator: int
    reduction: float
    bonus: float
    untried: bool
    latency: float

    @property
    def value(self) -> float:
        return GAMMA if self.untried else self.reduction + self.bonus

    @property
    def bonus_only(self) -> float:
        return GAMMA if self.untried else self.bonus


class DynaTune:
    """Algorithm 1 of DynaTune (4.2, 4.3): a slot for the operator with the largest upper confidence bound.

    r = weight x (work / best - work / (best + EI)), from the belief of the operator's learning curve. An operator that
    never had a slot has the constant gamma; among those the largest weight x best time goes first, so that early slots
    pay. One without any valid configuration makes the network's latency infinite and goes before all others, until it
    had `rescue` slots more than the others on average.
    Rules told: "rescue", "gamma", "belief" (the choice is not the one of the bonus alone), "bonus".
    """

    def __init__(self, seed: int, peak_flops: float, latency: float | None = None, rule: Rule = PRODUCT_RULE) -> None:
        if not (math.isfinite(peak_flops) and peak_flops > 0):
            raise ValueError(f"peak_flops {peak_flops} must be a positive number of FLOP/s; measure the target's peak")
        self._seed = seed
        self._peak = peak_flops
        self._latency = latency
        self._rule = rule
        self._slot_seconds = 0.0
        self._last = -1
        self._beliefs: dict[int, Belief] = {}

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the chosen operator's two terms and a table of all, in ms."""
        self._slot_seconds = slot_seconds
        self._peak = max([self._peak, *(_arithmetic(one) for one in progress)])
        if self._latency is None:
            self._latency = sum(_share(one) for one in progress if math.isfinite(one.best))
        going = active(progress, self._rule.patience)
        if not going:
            return None
        circular = next_in_circle(going, self._last).operator.index
        decision = self._rescue(going) or self._largest(going, sum(one.slots for one in progress), circular)
        self._last = decision.operator
        return decision

    def observe(self, progress: Progress) -> None:
        """Fits the belief of this operator again, and no other."""
        index = progress.operator.index
        self._peak = max(self._peak, _arithmetic(progress))
        belief = self._beliefs.setdefault(index, self._fresh(index))
        times = np.asarray(progress.curve, dtype=np.float64)
        speed = _work(progress) / progress.best
        # Bytes from a cache are faster than the memory's bandwidth: such an operator's ceiling is unknown, and not reached.
        ceiling = self._peak if speed < 0.9 * self._peak else max(self._peak, 2 * speed)
        belief.observe(_work(progress) / times, _ahead(progress, self._slot_seconds), ceiling)

    def belief(self, operator: int) -> Belief | None:
        """Of the operator with that index, for its diagnostics; None before its first slot."""
        return self._beliefs.get(operator)

    def state(self) -> State:
        """JSON."""
        return {
            "peak": self._peak,
            "latency": self._latency,
            "slot_seconds": self._slot_seconds,
            "last": self._last,
            "beliefs": {str(index): belief.state() for index, belief in self._beliefs.items()},
        }

    def restore(self, state: State) -> None:
        """Inverse of `state`; later decisions are identical."""
        self._peak, self._latency = state["peak"], state["latency"]
        self._slot_seconds, self._last = state["slot_seconds"], state["last"]
        self._beliefs = {}
        for index, kept in state["beliefs"].items():
            belief = self._fresh(int(index))
            belief.restore(kept)
            self._beliefs[int(index)] = belief

    def _fresh(self, index: int) -> Belief:
        # A generator an operator: the order in which operators are given or observed does not matter.
        return Belief(np.random.default_rng([self._seed, index]), self._rule.sampling)

    def _rescue(self, going: Sequence[Progress]) -> Decision | None:
        lost = [one for one in going if not math.isfinite(one.best)]
        found = [one.slots for one in going if math.isfinite(one.best)]
        limit = self._rule.rescue + (sum(found) / len(found) if found else math.inf)
        lost = [one for one in lost if one.slots < limit]
        if not lost:
            return None
        chosen = min(lost, key=lambda one: one.slots)
        return Decision(chosen.operator.index, "rescue", {"without_valid_configuration": len(lost)})

    def _largest(self, going: Sequence[Progress], slots: int, circular: int) -> Decision:
        """Argmax of the index; ties, and so all of gamma, go to the larger share of the latency."""
        table = [self._index(one, slots) for one in going]
        chosen = max(table, key=lambda one: (one.value, one.latency))
        by_bonus = max(table, key=lambda one: (one.bonus_only, one.latency))
        decided = chosen.operator != by_bonus.operator
        rule = "gamma" if chosen.untried else "belief" if decided else "bonus"
        terms = {
            "r_ms": chosen.reduction,
            "bonus_ms": None if chosen.untried else chosen.bonus,
            "operators": {str(one.operator): [_short(one.reduction), _short(one.bonus)] for one in table},
            "decided_by_belief": decided,
            "differs_from_round_robin": chosen.operator != circular,
            "scale": self._rule.scale,
        }
        return Decision(chosen.operator, rule, terms)

    def _index(self, one: Progress, slots: int) -> _Index:
        index, share = one.operator.index, 1e3 * _share(one)
        if one.slots == 0 or not math.isfinite(one.best):
            # Without a valid configuration nothing is known; `_rescue` has already given it what it may get.
            return _Index(index, 0.0, 0.0, one.slots == 0, share if math.isfinite(share) else 0.0)
        if index not in self._beliefs:
            self.observe(one)
        ahead = _ahead(one, self._slot_seconds)
        forecast = self._beliefs[index].forecast(ahead)
        if forecast is None:
            return _Index(index, 0.0, 0.0, False, share)
        cost = 1e3 * one.operator.weight * _work(one)
        reduction = cost / forecast.best - cost / (forecast.best + forecast.improvement)
        scale = 1.0
        if self._rule.scale == "spread":
            chance = self._beliefs[index].jump_chance(ahead)
            unforeseen = self._rule.surprise * share * math.sqrt(chance * (1 - chance))
            scale = math.hypot(float(np.std(cost / forecast.values)), unforeseen)
        c = self._rule.c_fast if (self._latency or 0.0) < self._rule.fast_latency else self._rule.c
        bonus = scale * math.sqrt(c * math.log(max(slots, 1)) / one.slots)
        return _Index(index, reduction, bonus, False, share)


def _work(one: Progress) -> float:
    """FLOP; never 0, so that an operator without work still has a speed."""
    return max(one.operator.work, 1.0)


def _arithmetic(one: Progress) -> float:
    """FLOP/s reached; 0 without a valid configuration."""
    return one.operator.flops / one.best


def _share(one: Progress) -> float:
    """Seconds of the network's latency spent in this operator."""
    return one.operator.weight * one.best


def _ahead(one: Progress, slot_seconds: float) -> float:
    """Configurations a slot is expected to measure: its length over the mean time of one (DynaTune's program)."""
    if one.seconds > 0 and slot_seconds > 0 and one.curve:
        return slot_seconds * len(one.curve) / one.seconds
    return len(one.curve) / max(one.slots, 1)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
