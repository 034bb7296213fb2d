"""What similar operators of a run teach each other: their cost models, and twins their best configurations.

The convolutions of a network differ in their extents and little else: a tile that is good for one is good for its like.
On 28 convolutions of two recorded runs (SqueezeNet, CPU) a model of others' points alone ordered unseen configurations
better (Spearman 0.5) than one of 8 to 64 own points (0.2 to 0.3), and both together better than own ones up to 128.
Giving others' points less weight (0.1, 0.3) changed nothing.

Twins have the same knobs with the same options: one convolution with another epilogue, behind another producer. What is the
best of one is worth a try by the other, whoever's turn it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.engine.history import History
from workers.engine.known import Known
from workers.engine.ranks import rank_correlation
from workers.engine.space import STRUCTURE, Configuration, Features, Knob, Operator, Sketch

LOANS = 512
"""Points borrowed at most, evenly of all lenders: a fit stays within a few times the cost of one of own points."""
LEAST = 8
"""Points a lender has; with fewer its best says nothing about how good its others are."""

AGREEMENT = 0.3
"""Least rank correlation of what others make expect with what was measured. On a landscape whose operators are alike in
shape only, transfer without this check doubled the latency."""

Loan = tuple[int, int, int]
"""Operator, sketch, and how many of its first points were there: enough to borrow the same points again."""


class Neighbours:
    """The operators of one run and their histories, which are read when points are borrowed; those of earlier runs have
    numbers under 0."""

    def __init__(self) -> None:
        self._histories: dict[int, History] = {}
        self._sketches: dict[tuple[int, int], Sketch] = {}
        self._alike: defaultdict[object, list[tuple[int, int]]] = defaultdict(list)
        self._same: defaultdict[tuple[Knob, ...], list[tuple[int, int]]] = defaultdict(list)
        self._twins: defaultdict[int, list[tuple[int, list[tuple[int, int]]]]] = defaultdict(list)
        self._earlier: list[Known] = []
        self._lenders: defaultdict[int, list[int]] = defaultdict(list)

    def join(self, operator: Operator, history: History) -> None:
        """Once an operator, before anybody borrows."""
        self._histories[operator.index] = history
        for number, sketch in enumerate(operator.sketches):
            self._sketches[operator.index, number] = sketch
            if any(knob.name != STRUCTURE for knob in sketch.knobs):  # programs of any two are alike in their number
                self._alike[_shape(sketch)].append((operator.index, number))
                twins = self._same[sketch.knobs]
                twins.append((operator.index, number))
                self._twins[operator.index].append((number, twins))  # kept: hashing thousands of options takes long

    def lend(self, operator: Operator, known: Known) -> None:
        """To this operator, what an earlier run found of another with its knobs; one object is read once for all."""
        place = next((place for place, other in enumerate(self._earlier) if other is known), len(self._earlier))
        lender = -1 - place
        if place == len(self._earlier):
            self._earlier.append(known)
            self._histories[lender] = History(operator, known)
            self._sketches |= {(lender, number): sketch for number, sketch in enumerate(operator.sketches)}
        self._lenders[operator.index].append(lender)

    def bests(self, operator: int) -> list[Configuration]:
        """The best configurations of its twins, as configurations of its own."""
        found = []
        for number, twins in self._twins[operator]:
            for other, theirs in twins:
                best = self._histories[other].best
                if other != operator and best is not None and best.configuration.sketch == theirs:
                    found.append(Configuration(number, best.configuration.choices))
        return list(dict.fromkeys(found))

    def loans(self, operator: int, sketch: Sketch) -> tuple[Loan, ...]:
        """What similar sketches of other operators have to lend now."""
        return self._offered(place for place in self._alike[_shape(sketch)] if place[0] != operator)

    def earlier(self, operator: int, sketch: int) -> tuple[Loan, ...]:
        """What earlier runs have to lend it, see `lend`."""
        return self._offered((lender, sketch) for lender in self._lenders[operator])

    def _offered(self, places: Iterable[tuple[int, int]]) -> tuple[Loan, ...]:
        """All that these (operator, sketch) have, where it is enough to lend."""
        found = []
        for index, number in places:
            speeds = self._histories[index].sketches[number].speeds
            if len(speeds) >= LEAST and max(speeds) > 0:
                found.append((index, number, len(speeds)))
        return tuple(found)

    def holds(self, operator: int, loan: Loan) -> bool:
        """Whether it can still be called in: earlier runs that a resumed one began with may be deleted."""
        lender, number, count = loan
        if lender < 0 and lender not in self._lenders[operator]:
            return False
        return count <= len(self._histories[lender].sketches[number].speeds)

    def points(self, loans: Sequence[Loan]) -> tuple[Features, NDArray[np.float64]]:
        """Features (n, width + tiles, see `placed`) and speeds (n,) relative to the best of their own operator."""
        features, speeds = [], []
        loans = loans[:: -(-len(loans) * LEAST // LOANS)]  # of very many some, each with as much as says something
        for operator, number, count in loans:
            seen, sketch = self._histories[operator].sketches[number], self._sketches[operator, number]
            count = min(count, len(seen.speeds))
            most = min(count, max(LEAST, LOANS // len(loans)))
            rows = np.unique(np.linspace(0, count - 1, most).astype(int))
            choices = np.asarray(seen.choices[:count], dtype=np.int32)[rows]
            found = np.asarray(seen.speeds[:count])
            features.append(placed(sketch, choices))
            speeds.append(found[rows] / found.max())
        return np.concatenate(features), np.concatenate(speeds)


def placed(sketch: Sketch, choices: NDArray[np.int32]) -> Features:
    """Features of choices (n, knobs) and, the same in every row, log2 of the extents of the tiles: what sets an
    operator apart from its like."""
    return np.hstack([sketch.features(choices), np.tile(extents(sketch), (len(choices), 1))])


def extents(sketch: Sketch) -> Features:
    """(tiles,): log2 of their extents."""
    found = [np.log2(np.prod(knob.options[0])) for knob in sketch.knobs if knob.kind == "tile"]
    return np.asarray(found, dtype=np.float32)


def agreement(opinion: NDArray[np.float64], speeds: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; 0 where either is constant."""
    return rank_correlation(opinion, speeds) or 0.0


def _shape(sketch: Sketch) -> tuple[tuple[str, int], ...]:
    """Sketches of one shape have columns that mean the same."""
    return tuple((knob.kind, knob.features.shape[1]) for knob in sketch.knobs)
