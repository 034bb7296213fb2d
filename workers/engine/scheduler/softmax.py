"""DynaTune with softmax sampling in the place of the upper confidence bound (5.3 and appendix A)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workers.engine.scheduler.by_chance import ByChance
from workers.engine.scheduler.dynatune import Index
from workers.engine.scheduler.rule import PRODUCT_RULE, Rule
from workers.engine.scheduler.shown import short

UNITS = ("mean", "millisecond")


class Softmax(ByChance):
    """Operators at random, with chances proportional to exp(expected reduction / temperature).

    The paper does not say what a temperature of 1 is. In milliseconds (`unit` "millisecond") a network of small
    operators, where a slot brings hundredths of one, would get slots nearly at random; the default unit is the "mean"
    expected reduction over the operators, which needs no scale. The belief decided where it made the choice likelier than
    what is known without it. Rules told: "rescue", "gamma", "softmax".
    """

    def __init__(
        self,
        seed: int,
        peak_flops: float,
        rule: Rule = PRODUCT_RULE,
        temperature: float = 1.0,
        unit: str = "mean",
    ) -> None:
        super().__init__(seed, peak_flops, rule)
        if not temperature > 0:
            raise ValueError(f"temperature {temperature} must be positive; a small one is nearly greedy")
        if unit not in UNITS:
            raise ValueError(f"unit {unit!r} is unknown; use one of {', '.join(UNITS)}")
        self._temperature, self._unit = temperature, unit

    def _draw(self, table: Sequence[Index]) -> tuple[Index, str, dict[str, Any]]:
        chances = self._chances([one.reduction for one in table])
        place = int(self._rng.choice(len(table), p=chances))
        terms = {
            "probability": short(float(chances[place])),
            "decided_by_belief": bool(chances[place] > self._chances([one.known for one in table])[place]),
        }
        return table[place], "softmax", terms

    def _chances(self, reductions: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Probabilities (n,) from expected reductions in ms; all alike when nothing is expected of any."""
        expected = np.asarray(reductions, dtype=np.float64)
        unit = float(expected.mean()) if self._unit == "mean" else 1.0
        scaled = expected / (self._temperature * unit) if unit > 0 else np.zeros(len(expected))
        weights = np.exp(scaled - scaled.max())
        return np.asarray(weights / weights.sum(), dtype=np.float64)
