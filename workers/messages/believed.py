"""Which of an operator's figures are believed: of hundreds the best is also the luckiest (winner's curse)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

C = TypeVar("C", bound=Hashable)


class Believed(Generic[C]):
    """The `best` configuration and its `seconds`; None and infinite before any ran.

    Once one is measured in a later round, what was measured before counts only where it was measured again too: the others'
    figures are the luck of the same minutes, and were not asked twice. What is measured from then on counts again.
    """

    def __init__(self) -> None:
        self.best: C | None = None
        self.seconds = math.inf
        self._again: dict[C, float] = {}

    def add(self, configuration: C, seconds: float, round_: int) -> None:
        """A measurement that ran, in the order in which they were told; rounds are counted from 0. Of equals the first is
        the best."""
        if round_ > 0:
            self._again.pop(configuration, None)
            self._again[configuration] = seconds
            self.best = min(self._again, key=self._again.__getitem__)
            self.seconds = self._again[self.best]
        elif seconds < self.seconds:
            self.best, self.seconds = configuration, seconds


def changed_by_belief(terms: Mapping[str, Any]) -> bool:
    """Whether a decision of these terms is the belief's and gives the slot to another than round-robin would have."""
    return bool(terms.get("decided_by_belief") and terms.get("differs_from_round_robin"))
