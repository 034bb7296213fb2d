"""DynaTune with epsilon-greedy in the place of the upper confidence bound (5.3 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.engine.ports import State
from workers.engine.scheduler.dynatune import DynaTune, _Index
from workers.engine.scheduler.rule import PRODUCT_RULE, Rule
from workers.engine.scheduler.setting import short


class EpsilonGreedy(DynaTune):
    """The largest expected reduction with probability 1 - `epsilon`, else any operator (0.05 in appendix A).

    Operators that never had a slot go first, as in Algorithm 1. Rules told: "rescue", "gamma", "greedy", "epsilon".
    """

    def __init__(
        self,
        seed: int,
        peak_flops: float,
        latency: float | None = None,
        rule: Rule = PRODUCT_RULE,
        epsilon: float = 0.05,
    ) -> None:
        super().__init__(seed, peak_flops, latency, rule)
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon {epsilon} is no probability; use a number from 0 to 1")
        self._epsilon = epsilon
        self._rng = np.random.default_rng(seed)

    def state(self) -> State:
        """JSON."""
        return {**super().state(), "rng": self._rng.bit_generator.state}

    def restore(self, state: State) -> None:
        """Inverse of `state`; later decisions are identical."""
        super().restore(state)
        self._rng.bit_generator.state = state["rng"]

    def _pick(self, table: Sequence[_Index]) -> tuple[_Index, str, dict[str, Any]]:
        terms: dict[str, Any] = {
            "operators": {str(one.operator): [short(one.reduction)] for one in table},
            "decided_by_belief": False,
            "epsilon": self._epsilon,
        }
        untried = [one for one in table if one.untried]
        if untried:
            return max(untried, key=lambda one: one.latency), "gamma", terms
        if self._rng.random() < self._epsilon:
            return table[int(self._rng.integers(len(table)))], "epsilon", terms
        chosen = max(table, key=lambda one: (one.reduction, one.latency))
        return chosen, "greedy", {**terms, "decided_by_belief": chosen.reduction > 0}
