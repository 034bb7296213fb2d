"""What could be had with hindsight: the oracle of DynaTune 4.1, and the regret of a schedule against it.

Arms are rested: an operator's curve depends on its own slots alone. A schedule of T slots is therefore worth what the
numbers of slots it gave are worth, whatever the order, and the best is the best split of T over the operators.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.errors import IllegalMethod
from workers.engine.ports import Decision, Progress, State
from workers.engine.scheduler.shown import short
from workers.engine.scheduler.standing import active, configurations_ahead, counted, rescue

Array = NDArray[np.float64]
Curves = Sequence[Sequence[float] | Array]


def regret(choices: Sequence[int], curves: Curves, weights: Sequence[float]) -> Array:
    """Cumulative regret in seconds after each of `choices` (slots,), never negative (DynaTune 4.1).

    `curves[k][n]` is the best time (s) of operator k after n slots, finite and not increasing; past its end a curve
    stays as it is. R(t) = the most that t slots could have taken off the network's latency, minus what the first t
    choices took off. Raises ValueError for curves that are no such thing.
    """
    gains = [_gains(curve, weight, len(choices)) for curve, weight in zip(curves, weights, strict=True)]
    given, total, reached = [0] * len(gains), 0.0, []
    for choice in choices:
        given[choice] += 1
        total += gains[choice][given[choice]] - gains[choice][given[choice] - 1]
        reached.append(total)
    best = _values(gains)[-1][1:]
    # Two sums of the same numbers in another order: rounding must not make a regret negative.
    return np.asarray(np.maximum(best - np.asarray(reached), 0.0) if best.size else best, dtype=np.float64)


def best_split(curves: Curves, weights: Sequence[float], slots: int) -> list[int]:
    """How many of `slots` each operator gets in the best schedule; for `curves` see `regret`."""
    gains = [_gains(curve, weight, slots) for curve, weight in zip(curves, weights, strict=True)]
    values, left, split = _values(gains), slots, [0] * len(gains)
    for k in range(len(gains) - 1, -1, -1):
        # Among equally good ones the least for the last, so that nothing is given where nothing is gained.
        worth = values[k][left::-1] + gains[k][: left + 1]
        split[k] = int(np.flatnonzero(worth >= worth.max() - 1e-12 * abs(worth.max()))[0])
        left -= split[k]
    return split


def _gains(curve: Sequence[float] | Array, weight: float, slots: int) -> Array:
    """What 0..`slots` slots take off the latency, in seconds, (slots + 1,)."""
    times = np.asarray(curve, dtype=np.float64)
    if not (times.ndim == 1 and len(times) and np.isfinite(times).all() and (np.diff(times) <= 0).all()):
        raise ValueError(
            "a curve must be finite and must not increase: give the best time after 0, 1, 2, ... slots, "
            "from the first valid configuration on"
        )
    kept = times[np.minimum(np.arange(slots + 1), len(times) - 1)]
    return np.asarray(weight * (times[0] - kept), dtype=np.float64)


def _values(gains: Sequence[Array]) -> list[Array]:
    """Most that n slots (0..T) bring to the first k operators, for k = 0..K: K + 1 rows of (T + 1,)."""
    size = len(gains[0]) if gains else 1
    rows = [np.zeros(size)]
    places = np.arange(size)
    before = places[:, None] - places[None, :]  # slots left for the operators before, by total and own slots
    for gain in gains:
        offered = np.where(before >= 0, rows[-1][np.maximum(before, 0)] + gain[None, :], -np.inf)
        rows.append(offered.max(axis=1))
    return rows


class Oracle:
    """Knows the recorded curves: the best times (s) after each configuration, by operator index.

    Each slot goes where the reduction a slot is steepest over any number m of slots ahead,
    max over m of weight x (best now - best after m more slots) / m: it looks over plateaus, which a rested arm needs,
    and needs no end of the run. With `ahead` no m is over that: with 1 each slot goes where it takes off most itself, which
    is what the choices of DynaTune's regret are held against (4.1). With `horizon`, the number of slots of the run, only the
    slots of the best split of them are given, in that order, so that the latency at the end is the lowest there can be; it
    keeps the split it made at first. A slot is a plan of `plan` candidates, where slots are plans, and `places` says, by
    operator index, where among an operator's candidates those lie that its curve counts: the others are duplicates, or too
    large, and take a place in a plan all the same. Without a plan a slot is of as many configurations as its length is expected
    to measure.
    Only a landscape has such curves. Rules told: "rescue", "oracle", "remainder" (nothing known is left to gain).
    Raises IllegalMethod without curves, or for an operator they lack.
    """

    def __init__(
        self,
        curves: Mapping[Any, Sequence[float]] | None,
        patience: int | None = None,
        horizon: int | None = None,
        ahead: int | None = None,
        limit: int = 4,
        plan: int | None = None,
        places: Mapping[Any, Sequence[int]] | None = None,
    ) -> None:
        if not curves:
            raise IllegalMethod(
                "scheduler 'oracle' needs the recorded curves of all operators and this run has none; run it on a "
                "landscape with the parameter curves, or choose another scheduler"
            )
        if (ahead is not None and ahead < 1) or (plan is not None and plan < 1):
            raise ValueError(f"ahead {ahead} starts at 1 slot and plan {plan} at 1 configuration")
        counted(patience, limit)
        self._curves = {int(index): np.asarray(curve, dtype=np.float64) for index, curve in curves.items()}
        self._patience, self._horizon, self._ahead, self._limit = patience, horizon, ahead, limit
        self._slot = plan
        self._places = {int(index): np.asarray(found) for index, found in (places or {}).items()}
        self._planned: dict[int, int] | None = None

    def choose(self, progress: Sequence[Progress], slot_seconds: float) -> Decision | None:
        """See `Scheduler`; `terms` has the slope in ms a slot, over how many slots it is taken, and a table of all."""
        going = active(progress, self._patience)
        if not going:
            return None
        return rescue(going, self._limit) or self._known(going, slot_seconds)

    def observe(self, progress: Progress) -> None:
        """Nothing is learned."""

    def state(self) -> State:
        """JSON; the curves are the run's, not the checkpoint's."""
        return {"planned": None if self._planned is None else {str(k): n for k, n in self._planned.items()}}

    def restore(self, state: State) -> None:
        """Inverse of `state`."""
        kept = state["planned"]
        self._planned = None if kept is None else {int(index): slots for index, slots in kept.items()}

    def _known(self, going: Sequence[Progress], slot_seconds: float) -> Decision:
        ahead = {one.operator.index: self._coming(one, slot_seconds) for one in going}
        if self._horizon is not None and self._planned is None:
            self._planned = self._plan(going, ahead, self._horizon - sum(one.slots for one in going))
        slopes = {one.operator.index: self._steepest(one, ahead[one.operator.index]) for one in going}
        index = max(slopes, key=lambda index: (slopes[index][0], -index))
        if slopes[index][0] <= 0:
            index = min(going, key=lambda one: (one.slots, one.operator.index)).operator.index
        slope, slots = slopes[index]
        terms = {
            "slope_ms": short(1e3 * slope),
            "over_slots": slots,
            "operators": {str(index): [short(1e3 * slope)] for index, (slope, _) in slopes.items()},
        }
        return Decision(index, "oracle" if slope > 0 else "remainder", terms)

    def _plan(self, going: Sequence[Progress], ahead: Mapping[int, Array], slots: int) -> dict[int, int]:
        """Slots by operator, those it had included."""
        weights = [one.operator.weight for one in going]
        split = best_split([ahead[one.operator.index] for one in going], weights, max(slots, 0))
        return {one.operator.index: one.slots + more for one, more in zip(going, split, strict=True)}

    def _coming(self, one: Progress, slot_seconds: float) -> Array:
        """Its best time now and after each further slot, as long as anything is known, in seconds."""
        if one.operator.index not in self._curves:
            raise IllegalMethod(
                f"scheduler 'oracle' has no recorded curve of operator {one.operator.index}; it has "
                f"{sorted(self._curves)}: record them all"
            )
        curve = self._curves[one.operator.index]
        had = self._ends(one, slot_seconds, len(curve))
        later = np.minimum(curve[np.minimum(had, len(curve)) - 1], one.best)
        return np.concatenate([[one.best], np.minimum.accumulate(later)])

    def _ends(self, one: Progress, slot_seconds: float, most: int) -> NDArray[np.int64]:
        """How many points of its curve it has after each further slot, until it has `most`, one at least."""
        had = len(one.curve)
        if self._slot is None:
            step = max(1.0, configurations_ahead(one, slot_seconds))
            slots = np.arange(1, 1 + max(0, math.ceil((most - had) / step)))
            return had + np.round(step * slots).astype(np.int64)
        places = self._places.get(one.operator.index, np.arange(most))
        if not len(places):
            return np.zeros(0, dtype=np.int64)
        # One at least was the warm-up's; what a plan ended with may have been no point.
        done = max(int(places[had - 1]) + 1 if had else 0, 1 + self._slot * one.slots)
        slots = np.arange(1, 1 + max(0, math.ceil((int(places[-1]) + 1 - done) / self._slot)))
        return np.maximum(1, np.searchsorted(places, done + self._slot * slots))

    def _steepest(self, one: Progress, ahead: Array) -> tuple[float, int]:
        """Largest weighted reduction a slot in seconds, and over how many slots; (0, 0) when nothing is to gain."""
        if self._planned is not None:
            ahead = ahead[: 1 + max(0, self._planned.get(one.operator.index, 0) - one.slots)]
        if self._ahead is not None:
            ahead = ahead[: 1 + self._ahead]
        if not math.isfinite(one.best) or len(ahead) < 2:
            return 0.0, 0
        slopes = one.operator.weight * (ahead[0] - ahead[1:]) / np.arange(1, len(ahead))
        place = int(np.argmax(slopes))
        return (float(slopes[place]), place + 1) if slopes[place] > 0 else (0.0, 0)
