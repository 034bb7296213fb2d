"""DynaTune with epsilon-greedy in the place of the upper confidence bound (5.3 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workers.engine.scheduler.by_chance import ByChance
from workers.engine.scheduler.dynatune import Index
from workers.engine.scheduler.rule import PRODUCT_RULE, Rule


class EpsilonGreedy(ByChance):
    """The largest expected reduction with probability 1 - `epsilon`, else any operator (0.05 in appendix A).

    The belief decided where it expects something, and of a rule that scores by speed where the operator that is the fastest
    already would have been another. Rules told: "rescue", "gamma", "greedy" ("speed" by that score), "epsilon".
    """

    def __init__(
        self,
        seed: int,
        peak_flops: float,
        rule: Rule = PRODUCT_RULE,
        epsilon: float = 0.05,
    ) -> None:
        super().__init__(seed, peak_flops, rule, epsilon=epsilon)
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon {epsilon} is no probability; use a number from 0 to 1")
        self._epsilon = epsilon

    def _draw(self, table: Sequence[Index]) -> tuple[Index, str, dict[str, Any]]:
        if self._rng.random() < self._epsilon:
            return table[int(self._rng.integers(len(table)))], "epsilon", {}
        chosen = max(table, key=lambda one: (one.reduction, one.latency))
        known = max(one.known for one in table)
        decided = chosen.reduction > 0 and (chosen.known < known or known == 0)
        return chosen, "speed" if self._rule.score == "speed" else "greedy", {"decided_by_belief": decided}
