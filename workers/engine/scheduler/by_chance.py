"""What DynaTune's action functions that draw have in common (5.3 and appendix A)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.engine.ports import State
from workers.engine.scheduler.dynatune import DynaTune, Index
from workers.engine.scheduler.rule import PRODUCT_RULE, TERMS, Rule
from workers.engine.scheduler.shown import short


class ByChance(DynaTune):
    """Operators with the constant gamma go first, as in Algorithm 1; then `_draw` decides, by a generator of its own."""

    def __init__(self, seed: int, peak_flops: float, rule: Rule = PRODUCT_RULE, **told: Any) -> None:
        """`told` stands in the terms of every decision."""
        super().__init__(seed, peak_flops, rule)
        self._told_always = told
        self._rng = np.random.default_rng([seed, *b"by_chance"])

    def state(self) -> State:
        """JSON."""
        return {**super().state(), "rng": self._rng.bit_generator.state}

    def restore(self, state: State) -> None:
        """Inverse of `state`; later decisions are identical."""
        super().restore(state)
        self._rng.bit_generator.state = state["rng"]

    def _pick(self, table: Sequence[Index]) -> tuple[Index, str, dict[str, Any]]:
        terms: dict[str, Any] = {
            TERMS[self._rule.score][2]: {str(one.operator): [short(one.reduction)] for one in table},
            "decided_by_belief": False,
            **self._told_always,
        }
        first = [one for one in table if one.gamma]
        if first:
            return max(first, key=lambda one: one.latency), "gamma", terms
        chosen, rule, drawn = self._draw(table)
        return chosen, rule, {**terms, **drawn}

    @abstractmethod
    def _draw(self, table: Sequence[Index]) -> tuple[Index, str, dict[str, Any]]:
        """Which of them, none with gamma, by which rule, and the terms of it."""
