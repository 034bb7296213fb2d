"""Ansor's task scheduler (Zheng et al., OSDI 2020, section 6): DynaTune's rival in appendix C."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.shown import short
from workers.engine.scheduler.standing import active, counted, latency_share, next_in_circle, rescue, work
from workers.engine.space import PRODUCTS

GOLDEN = 1.618
"""Operators of one structure whose FLOPs are equal on a logarithmic scale of this base are similar (program)."""

OUTGROWN = 5
"""Slots more than any other of its group after which an operator that stays behind leaves it (program)."""

Group = tuple[object, ...]


@dataclass(frozen=True)
class _Slope:
    """In ms a slot, weight included: what the last slots brought, what the next may bring, and both together."""

    operator: int
    backward: float
    forward: float
    total: float


class Gradient:
    """The steepest descent of the network's latency f = sum of weight x g over the slots t of each operator:

        df/dt = weight x (alpha x (g(t) - g(t - window)) / window + (1 - alpha) x (next - g(t)))
        next = min(g(t) - g(t) / t, beta x work / best speed among similar operators)

    g(t) is the best time after t slots. The first term of `next` is the optimistic guess that an operator could be done
    in one more round of all it had; the second says that it will be no slower than `beta` times what its likes reached.
    Appendix C's rival is Ansor's program with its defaults, as here: alpha 0.2, beta 2, window 3. The paper also gives any
    operator a slot with probability `epsilon`, for which the program has a parameter (0.05) that nothing reads: 0 is the
    program. Until t = window the backward term is 0, and a round-robin over all operators comes first.
    Rules told: "rescue", "warm_up", "epsilon", "gradient", "tie".
    """

    def __init__(
        self,
        seed: int,
        patience: int | None = None,
        alpha: float = 0.2,
        beta: float = 2.0,
        window: int = 3,
        epsilon: float = 0.0,
        limit: int = 4,
    ) -> None:
        if not (0 <= alpha <= 1 and beta > 0 and window >= 1 and 0 <= epsilon <= 1):
            raise ValueError(
                f"alpha {alpha}, beta {beta}, window {window}, epsilon {epsilon}: "
                "alpha and epsilon are from 0 to 1, beta is positive, the window at least one slot"
            )
        counted(patience, limit)
        self._rng = np.random.default_rng([seed, *b"gradient"])
        self._patience, self._limit = patience, limit
        self._alpha, self._beta, self._window, self._epsilon = alpha, beta, window, epsilon
        self._last = -1
        self._ends: dict[int, list[tuple[int, float]]] = {}
        self._outgrown: set[int] = set()

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the chosen operator's terms and a table of all, in ms a slot."""
        going = active(progress, self._patience)
        if not going:
            return None
        circular = next_in_circle(going, self._last).operator.index
        decision = rescue(going, self._limit) or self._warm_up(going) or self._steepest(progress, going)
        self._last = decision.operator
        return Decision(
            decision.operator, decision.rule, {**decision.terms, "differs_from_round_robin": self._last != circular}
        )

    def observe(self, progress: Progress) -> None:
        """Keeps the best time at the end of the slot, for the backward term."""
        ends = self._ends.setdefault(progress.operator.index, [])
        if ends and ends[-1][0] == progress.slots:  # another operator's slot brought it something
            ends.pop()
        if math.isfinite(progress.best):
            ends.append((progress.slots, progress.best))
        # One more than the window: its first and its last slot.
        del ends[: -(self._window + 1)]

    def state(self) -> State:
        """JSON."""
        return {
            "rng": self._rng.bit_generator.state,
            "last": self._last,
            "ends": {str(index): [list(end) for end in ends] for index, ends in self._ends.items()},
            "outgrown": sorted(self._outgrown),
        }

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        self._rng.bit_generator.state = state["rng"]
        self._last, self._outgrown = state["last"], set(state["outgrown"])
        self._ends = {int(index): [(slot, best) for slot, best in ends] for index, ends in state["ends"].items()}

    def _warm_up(self, going: Sequence[Progress]) -> Decision | None:
        untried = [one for one in going if one.slots == 0]
        return Decision(untried[0].operator.index, "warm_up", {"untried": len(untried)}) if untried else None

    def _steepest(self, progress: Sequence[Progress], going: Sequence[Progress]) -> Decision:
        fastest = self._fastest(progress)
        slopes = [self._slope(one, fastest.get(one.operator.index, 0.0)) for one in going if math.isfinite(one.best)]
        slopes = slopes or [_Slope(one.operator.index, 0.0, 0.0, 0.0) for one in going]
        totals = [slope.total for slope in slopes]
        chosen, rule = slopes[totals.index(min(totals))], "gradient"
        even = len(totals) > 1 and min(totals) == max(totals)
        if even or self._rng.random() < self._epsilon:
            chosen, rule = slopes[int(self._rng.integers(len(slopes)))], "tie" if even else "epsilon"
        terms: dict[str, Any] = {
            "backward_ms": short(chosen.backward),
            "forward_ms": short(chosen.forward),
            "gradient_ms": short(chosen.total),
            "operators": {str(one.operator): [short(one.backward), short(one.forward)] for one in slopes},
        }
        return Decision(chosen.operator, rule, terms)

    def _slope(self, one: Progress, fastest: float) -> _Slope:
        """`fastest` is the best speed in FLOP/s among operators similar to it, 0 without any."""
        share = 1e3 * latency_share(one)
        backward = 0.0
        then = [end for end in self._ends.get(one.operator.index, []) if end[0] <= one.slots - self._window]
        if then:
            slots, best = then[-1]
            backward = (share - 1e3 * one.operator.weight * best) / (one.slots - slots)
        ahead = share - share / max(one.slots, 1)
        if fastest > 0:
            ahead = min(ahead, 1e3 * one.operator.weight * self._beta * work(one) / fastest)
        forward = ahead - share
        return _Slope(one.operator.index, backward, forward, self._alpha * backward + (1 - self._alpha) * forward)

    def _fastest(self, progress: Sequence[Progress]) -> dict[int, float]:
        """The best speed (FLOP/s) in each operator's group, by operator, where it has company."""
        groups: dict[Group, list[Progress]] = {}
        for one in sorted(progress, key=lambda one: one.operator.index):
            if one.operator.index not in self._outgrown and math.isfinite(one.best):
                groups.setdefault(similarity(one), []).append(one)
        found: dict[int, float] = {}
        for group, members in groups.items():
            fastest = max(work(one) / one.best for one in members)
            outgrown = {one.operator.index for one in members if self._left_behind(one, members, fastest)}
            self._outgrown |= outgrown
            members = [one for one in members if one.operator.index not in outgrown]
            if group and len(members) > 1:
                found.update({one.operator.index: fastest for one in members})
        return found

    def _left_behind(self, one: Progress, members: Sequence[Progress], fastest: float) -> bool:
        """Whether it had many slots more than its likes and is still `beta` times slower: then it is not like them."""
        others = [other.slots for other in members if other is not one]
        slow = work(one) / one.best < fastest / self._beta
        return bool(others) and slow and one.slots > OUTGROWN + max(others)


def similarity(one: Progress) -> Group:
    """Equal for operators that Ansor calls similar: the same products, the same knobs in every sketch, and FLOPs of one
    magnitude. Empty, similar to none, for operators without a product, or without knobs.

    Ansor's program compares tags of the computations, of which TVM has none any more: their names stand for them. Knobs
    tell a depthwise convolution from a full one; a recorded search has but its step for a knob (`landscapes.curves`).
    """
    words = (word.rstrip("0123456789") for word in one.operator.name.split("_"))
    products = tuple(word for word in words if PRODUCTS.search(word))
    knobs = tuple(tuple((knob.name, knob.kind) for knob in sketch.knobs) for sketch in one.operator.sketches)
    if not (products and any(knobs)):
        return ()
    return (products, knobs, int(math.log(one.operator.flops + 1, GOLDEN)))
