"""DynaTune's scheduler: an upper confidence bound on the latency a slot is expected to take off the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.engine.belief import Belief, Forecast, Records
from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.rule import GAMMA, PRODUCT_RULE, TERMS, Rule
from workers.engine.scheduler.shown import band, short, told_chain, told_low
from workers.engine.scheduler.standing import active, configurations_ahead, latency_share, next_in_circle, rescue, work

CLOSE = 0.9
"""Of its ceiling, at most, is what an operator has reached."""


@dataclass(frozen=True)
class Index:
    """Terms of one operator, in ms: expected reduction and bonus, or `gamma` in their place, and its share of the latency. Of
    a rule that scores by speed the first two are the predicted speed and its bonus, in GFLOP/s. `first`: it had no slot;
    `known`: of such a rule the speed so far."""

    operator: int
    reduction: float
    bonus: float
    gamma: bool
    latency: float
    first: bool = False
    known: float = 0.0

    @property
    def value(self) -> float:
        return GAMMA if self.gamma else self.reduction + self.bonus

    @property
    def bonus_only(self) -> float:
        return GAMMA if self.gamma else self.bonus


class DynaTune:
    """Algorithm 1 of DynaTune (4.2, 4.3): a slot for the operator with the largest upper confidence bound.

    r = weight x (work / best - work / (best + EI)), from the belief of the operator's learning curve. An operator that
    never had a slot has the constant gamma; among those the largest weight x best time goes first, so that early slots
    pay; or, where the rule is `open`, what `first_slot` says. One without any valid configuration makes the network's
    latency infinite and goes before all others, until it had `rescue` slots more than the others on average. `rule` lists
    where this goes beyond the paper.
    Rules told: "rescue", "gamma", "prior" (a first slot by an open rule), "belief" (the choice is not the one of the
    bonus alone, or its gain is the largest and larger than its bonus; "speed" where that is what is believed in), "bonus".
    """

    def __init__(self, seed: int, peak_flops: float, rule: Rule = PRODUCT_RULE) -> None:
        if not (math.isfinite(peak_flops) and peak_flops > 0):
            raise ValueError(f"peak_flops {peak_flops} must be a positive number of FLOP/s; measure the target's peak")
        self._seed = seed
        self._peak = peak_flops
        self._carried = 0.0
        self._latency: float | None = None
        self._rule = rule
        self._slot_seconds = 0.0
        self._last = -1
        self._beliefs: dict[int, Belief] = {}
        self._records = Records()

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the chosen operator's two terms and a table of all (`TERMS`), its belief
        and, where that was sampled, the "chain" (`told_chain`)."""
        self._slot_seconds = slot_seconds
        self._look(progress)
        if self._latency is None and all(math.isfinite(one.best) for one in progress):
            self._latency = sum(one.operator.weight * next(filter(math.isfinite, one.curve)) for one in progress)
        going = self._going(progress)
        if not going:
            return None
        circular = next_in_circle(going, self._last).operator.index
        decision = rescue(going, self._rule.rescue) or self._allot(going, sum(one.slots for one in progress), circular)
        self._last = decision.operator
        return decision

    def observe(self, progress: Progress) -> None:
        """Fits the belief of this operator again, and no other; it stands still between slots unless another's brought it
        something."""
        self._count(progress)
        index = progress.operator.index
        followed = index in self._beliefs or progress.slots <= 1
        belief = self._beliefs.setdefault(index, self._fresh(index))
        times = np.asarray(progress.curve, dtype=np.float64)
        fit = belief.observe if followed else belief.begin
        fit(work(progress) / times, configurations_ahead(progress, self._slot_seconds), self._ceiling(progress))

    def remember(self, progress: Progress) -> None:
        """See `Foreseeing`. What was believed of the operator is forgotten: a posterior is that of its curve, whatever the
        chain began from."""
        self._count(progress)
        self._beliefs.pop(progress.operator.index, None)

    def foreseen(self, progress: Progress, configurations: float) -> float:
        """See `Foreseeing`; the best so far where there is no belief."""
        if progress.slots == 0:
            return progress.best * (1 - first_slot(self._begun(progress))[0]) if self._rule.open else 0.0
        belief = self._beliefs.get(progress.operator.index)
        forecast = belief.forecast(configurations) if belief is not None else None
        if forecast is None:
            return progress.best
        return progress.best * forecast.best / (forecast.best + self._gained(forecast))

    def belief(self, operator: int) -> Belief | None:
        """Of the operator with that index; None before its first slot."""
        return self._beliefs.get(operator)

    def state(self) -> State:
        """JSON."""
        return {
            "peak": self._peak,
            "carried": self._carried,
            "latency": self._latency,
            "slot_seconds": self._slot_seconds,
            "last": self._last,
            "beliefs": {str(index): belief.state() for index, belief in self._beliefs.items()},
            "records": self._records.state(),
        }

    def restore(self, state: State) -> None:
        """Inverse of `state`; later decisions are identical."""
        self._peak, self._latency = state["peak"], state["latency"]
        self._slot_seconds, self._last = state["slot_seconds"], state["last"]
        self._carried = state.get("carried", 0.0)  # checkpoints of earlier versions have neither this nor records
        if "records" in state:
            self._records.restore(state["records"])
        self._beliefs = {}
        for index, kept in state["beliefs"].items():
            belief = self._fresh(int(index))
            belief.restore(kept)
            self._beliefs[int(index)] = belief

    def _look(self, progress: Sequence[Progress]) -> None:
        """Raises the ceilings to what has been reached."""
        self._peak = max([self._peak, *(_arithmetic(one) for one in progress)])
        self._carried = max([self._carried, *(work(one) / one.best for one in progress if _bound_by_bytes(one))])

    def _count(self, one: Progress) -> None:
        """What needs no fit."""
        self._look([one])
        self._records.observe(one.operator.index, one.curve, one.slots)

    def _ceiling(self, one: Progress) -> float:
        """FLOP/s that it cannot get over."""
        # A measured peak is one of some minutes, and bytes may come from nearer than the memory: what is as fast as the
        # peak, or faster, may still gain a little.
        return max(self._peak, work(one) / one.best / CLOSE)

    def _fresh(self, index: int) -> Belief:
        # A generator an operator: the order in which operators are given or observed does not matter.
        rng = np.random.default_rng([self._seed, index, *b"belief"])
        return Belief(rng, self._rule.sampling, self._rule.curve, self._rule.prior, self._rule.pieces)

    def _going(self, progress: Sequence[Progress]) -> list[Progress]:
        """Operators that are not finished (see `Rule`)."""
        left, patience = active(progress, None), self._rule.patience
        going = active(left, patience)
        while left and not going and self._rule.onward and patience is not None:
            patience *= 2
            going = active(left, patience)
        return going

    def _allot(self, going: Sequence[Progress], slots: int, circular: int) -> Decision:
        """The rule's choice among operators of which at least one is tried or has a valid configuration."""
        table = [self._index(one, slots) for one in going]
        chosen, rule, terms = self._pick(table)
        one = next(one for one in going if one.operator.index == chosen.operator)
        belief = self._beliefs.get(chosen.operator)
        shown = {
            TERMS[self._rule.score][0]: chosen.reduction,
            **terms,
            "decided_by_belief": not chosen.first and terms["decided_by_belief"],
            "differs_from_round_robin": chosen.operator != circular,
            "belief": self._told(one),
            **(told_chain(belief, one) if belief is not None else {}),
        }
        return Decision(chosen.operator, rule, shown)

    def _pick(self, table: Sequence[Index]) -> tuple[Index, str, dict[str, Any]]:
        """Argmax of the index; ties, and so all of gamma, go to the larger share of the latency."""
        chosen = max(table, key=lambda one: (one.value, one.latency))
        by_bonus = max(table, key=lambda one: (one.bonus_only, one.latency))
        decided = chosen.operator != by_bonus.operator
        _, bonus, table_of_all = TERMS[self._rule.score]
        terms = {
            bonus: None if chosen.gamma else chosen.bonus,
            table_of_all: {str(one.operator): [short(one.reduction), short(one.bonus)] for one in table},
            "decided_by_belief": decided,
            "scale": self._rule.scale,
        }
        gain = decided or chosen.reduction > max(
            chosen.bonus, *(one.reduction for one in table if one is not chosen), 0.0
        )
        rule = "gamma" if chosen.gamma else "prior" if chosen.first else "belief" if gain else "bonus"
        if rule == "belief" and self._rule.score == "speed":
            rule = "speed"
        return chosen, rule, terms

    def _index(self, one: Progress, slots: int) -> Index:
        """After so many slots in all."""
        index, share = one.operator.index, 1e3 * latency_share(one)
        if not math.isfinite(one.best):
            # Nothing is known of it; `rescue` has already given it what it may get.
            return Index(index, 0.0, 0.0, one.slots == 0, 0.0, first=one.slots == 0)
        if self._rule.score == "speed":
            return self._predicted(one, slots)
        if one.slots == 0:
            reduction, spread = first_slot(self._begun(one))
            bonus = share * spread * self._confidence(slots, 1)
            return Index(index, share * reduction, bonus, not self._rule.open, share, first=True)
        ahead = configurations_ahead(one, self._slot_seconds)
        forecast = self._believed(one).forecast(ahead)
        if forecast is None:
            return Index(index, 0.0, 0.0, False, share)
        cost = 1e3 * one.operator.weight * work(one)
        reduction = cost / forecast.best - cost / (forecast.best + self._gained(forecast))
        scale = 1.0
        if self._rule.scale == "spread":
            chance = self._beliefs[index].jump_chance(ahead)
            surprise = min(self._rule.surprise, 1 - self._reached(one))
            unforeseen = surprise * share * math.sqrt(chance * (1 - chance))
            reached = forecast.best + forecast.gains if self._rule.rise else forecast.reached
            scale = math.hypot(float(np.std(cost / reached)), unforeseen)
        return Index(index, reduction, scale * self._confidence(slots, one.slots), False, share)

    def _predicted(self, one: Progress, slots: int) -> Index:
        """The index of a rule that scores by speed, after so many slots in all; before a first slot the speed it has."""
        known, first = 1e-9 * work(one) / one.best, one.slots == 0
        forecast = None if first else self._believed(one).forecast(configurations_ahead(one, self._slot_seconds))
        speed = known if forecast is None else 1e-9 * forecast.mean
        bonus = 0.0 if first else self._confidence(slots, one.slots)
        return Index(one.operator.index, speed, bonus, first, 1e3 * latency_share(one), first, known)

    def _believed(self, one: Progress) -> Belief:
        """Of an operator that had a slot; fitted now where that was never observed."""
        if one.operator.index not in self._beliefs:
            self.observe(one)
        return self._beliefs[one.operator.index]

    def _confidence(self, slots: int, own: int) -> float:
        """sqrt(C ln t / c) of the slot that follows so many."""
        fast = self._latency is not None and self._latency < self._rule.fast_latency
        return math.sqrt((self._rule.c_fast if fast else self._rule.c) * math.log(slots + 1) / own)

    def _reached(self, one: Progress) -> float:
        """Its speed as a share of its ceiling, CLOSE at most."""
        return work(one) / one.best / self._ceiling(one)

    def _begun(self, one: Progress) -> float:
        """The same of one that had no slot. Bound by bytes, it may come to what the fastest such operator has: the bandwidth is
        the memory's, and what was written a moment ago is read from caches at up to five times that."""
        ceiling = max(self._ceiling(one), self._carried) if _bound_by_bytes(one) else self._ceiling(one)
        return work(one) / one.best / ceiling

    def _gained(self, forecast: Forecast) -> float:
        """FLOP/s."""
        return forecast.rise if self._rule.rise else forecast.improvement

    def _told(self, one: Progress) -> dict[str, Any] | None:
        """What is believed of the operator's best time in ms after `x` configurations (see `messages.foretold`), and how its
        fit went."""
        belief = self._beliefs.get(one.operator.index)
        if belief is None:
            return None
        configurations = band(one, self._slot_seconds)
        forecasts = [belief.forecast(count) for count in configurations]
        means = [1e3 * float(np.mean(work(one) / forecast.reached)) for forecast in forecasts if forecast is not None]
        if not means:
            return None
        told = belief.diagnostics()
        return {
            "x": [len(one.curve) + count for count in configurations],
            "mean_ms": [short(mean) for mean in means],
            "low_ms": told_low(self._records, one, configurations),
            "acceptance": None if told.acceptance is None else short(told.acceptance),
            "autocorrelation": None if told.autocorrelation is None else short(told.autocorrelation),
            "at_least": told.at_least,
            "segments": told.segments,
            "points": told.points,
        }


def first_slot(reached: float) -> tuple[float, float]:
    """Mean and standard deviation of the share of its time that a first slot takes off an operator whose speed `reached` so
    much (under 1) of its ceiling: it may come to lie anywhere between the two, evenly on a logarithmic scale."""
    decades = -math.log(reached)
    mean, square = (1 - reached) / decades, (1 - reached**2) / (2 * decades)
    return 1 - mean, math.sqrt(max(0.0, square - mean**2))


def _arithmetic(one: Progress) -> float:
    """FLOP/s reached, as float32's instructions count; 0 without a valid configuration."""
    return one.operator.flops / one.operator.at_once / one.best


def _bound_by_bytes(one: Progress) -> bool:
    """Whether moving what it reads and writes takes longer than its arithmetic."""
    return one.operator.flops / one.operator.at_once < work(one)
