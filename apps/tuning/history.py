"""The best so far, from measurements in the order of their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apps.tuning.models import Operator
from workers.messages.believed import Believed


class History:
    """The best so far after each batch: of the network (`curve`) and of every operator (`sparks`)."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._weights = {operator.index: operator.weight for operator in operators}
        self._believed = {index: Believed[str]() for index in self._weights}
        self._best: dict[int, float] = {}
        self._trials = dict.fromkeys(self._weights, 0)
        self.curve: list[list[float]] = []
        self.sparks: dict[int, list[list[float]]] = {index: [] for index in self._weights}

    @property
    def steps(self) -> int:
        return len(self.curve) + sum(map(len, self.sparks.values()))

    def add(self, clock: float, batch: Iterable[tuple[int, float | None, str, int]]) -> None:
        """(operator, seconds, configuration, round)."""
        changed = set()
        for index, seconds, configuration, round_ in batch:
            self._trials[index] += 1
            if seconds is None:
                continue
            self._believed[index].add(configuration, seconds, round_)
            best = self._believed[index].seconds
            if best != self._best.get(index):
                self._best[index] = best
                changed.add(index)
        for index in changed:
            self.sparks[index].append([self._trials[index], self._best[index]])
        if changed and len(self._best) == len(self._weights):
            # In the operators' order, as the journal adds: the same sum to the last bit.
            total = 0.0
            for index, weight in self._weights.items():
                total += weight * self._best[index]
            self.curve.append([clock, total])
