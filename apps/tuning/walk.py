"""What a page draws of a run's measurements. Of the runs that were looked at last it is kept: what was measured never changes,
so that only what came since is read when such a run is opened again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Any

from apps.tuning.history import History
from apps.tuning.models import Measurement, Operator, TuningRun
from apps.tuning.paging import by_number
from apps.tuning.thinning import Sample, thinned
from workers.messages.causes import UNBUILT

POINTS, RUNS = 3000, 8
MOST = 50_000
"""Steps of the best that are kept of a run, with its points 10 MB at most; one of more is walked anew every time."""

Weights = list[tuple[int, float]]


@contextmanager
def walking(run: Any) -> Iterator[Walk]:
    """The walk of the run of this key, from before its last number is read until all is drawn: of two who open a run at once
    the second has little left to read."""
    walk = _walk_of(run)
    with walk.turn:
        yield walk


class Walk:
    """Of one run, for who has its `turn`."""

    def __init__(self) -> None:
        self.turn = Lock()
        self._kept: tuple[Weights, int, History, Scatter] | None = None

    def to(self, run: TuningRun, operators: Sequence[Operator], seq: int) -> tuple[History, Scatter]:
        """Of all measurements up to this number."""
        weights = [(operator.index, operator.weight) for operator in operators]
        kept, self._kept = self._kept, None  # where this breaks off, the next one begins anew
        if kept is None or kept[0] != weights or kept[1] > seq:
            kept = weights, -1, History(operators), Scatter()
        _, last, history, scatter = kept
        measured = Measurement.objects.filter(run=run, seq__gt=last, seq__lte=seq).exclude(cause__in=UNBUILT)
        rows = by_number(measured, "clock", "operator", "seconds", "configuration", "cause", "round")
        for clock, batch in groupby(rows, key=itemgetter(1)):
            history.add(clock, (scatter.seen(row) for row in batch))
        if history.steps <= MOST:
            self._kept = weights, seq, history, scatter
        return history, scatter


@lru_cache(RUNS)
def _walk_of(run: Any) -> Walk:
    """Whoever asks."""
    return Walk()


class Scatter:
    """Points for a chart: every improvement of an operator as far as there is room, of the rest an even choice."""

    def __init__(self) -> None:
        self._best: dict[int, float] = {}
        self._count = 0
        self._better: Sample[tuple[int, list[Any]]] = Sample(POINTS)
        self._rest: Sample[tuple[int, list[Any]]] = Sample(POINTS)

    def seen(self, row: tuple[Any, ...]) -> tuple[int, float | None, str, int]:
        """Takes note of a measurement (seq, clock, operator, seconds, configuration, cause, round) for the history."""
        _, clock, operator, seconds, configuration, cause, round_ = row
        better = seconds is not None and seconds < self._best.get(operator, float("inf"))
        if better and seconds is not None:
            self._best[operator] = seconds
        (self._better if better else self._rest).add((self._count, [clock, operator, seconds, cause]))
        self._count += 1
        return operator, seconds, configuration, round_

    def points(self) -> list[list[Any]]:
        better, rest = self._better.kept, self._rest.kept
        if self._count > POINTS:
            better = thinned(better, max(POINTS // 2, POINTS - len(rest)))
            rest = thinned(rest, POINTS - len(better))
        return [point for _, point in sorted([*better, *rest], key=lambda numbered: numbered[0])]
