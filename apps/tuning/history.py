"""The best so far, from measurements in the order of their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from apps.tuning.models import Measurement, Operator, TuningRun


def repeated(run: TuningRun) -> frozenset[str]:
    """Configurations that were measured in more than one round."""
    again = Measurement.objects.filter(run=run, round__gt=0).order_by()
    return frozenset(again.values_list("configuration", flat=True))


class History:
    """The best so far after each batch: of the network (`curve`) and of every operator (`sparks`).

    `repeated` are configurations of which there may be later rounds.
    """

    def __init__(self, operators: Sequence[Operator], repeated: Collection[str]) -> None:
        self._weights = {operator.index: operator.weight for operator in operators}
        self._best: dict[int, float] = {}
        self._repeated = repeated
        self._once: dict[int, float] = {}
        self._figures: dict[int, dict[str, float]] = {index: {} for index in self._weights}
        self._trials = dict.fromkeys(self._weights, 0)
        self.curve: list[list[float]] = []
        self.sparks: dict[int, list[list[float]]] = {index: [] for index in self._weights}

    def add(self, clock: float, batch: Iterable[tuple[int, float | None, str]]) -> None:
        """(operator, seconds, configuration); a later round of a configuration replaces its figure."""
        changed = set()
        for index, seconds, configuration in batch:
            self._trials[index] += 1
            if seconds is None:
                continue
            if configuration in self._repeated:
                self._figures[index][configuration] = seconds
            else:
                self._once[index] = min(seconds, self._once.get(index, seconds))
            before = self._best.get(index)
            if before is None or seconds < before or configuration in self._repeated:
                best = min([*self._figures[index].values(), *([self._once[index]] if index in self._once else [])])
                if best != before:
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
