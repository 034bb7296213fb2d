"""A closed part of an operator's space, small enough to measure whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from workers.engine.space import Configuration, Knob, Operator


@dataclass(frozen=True)
class Subspace:
    """Sketch `sketch` of an operator with, for each knob, the kept options (ascending, so that neighbours stay so)."""

    sketch: int
    kept: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        return math.prod(len(options) for options in self.kept)

    def whole(self, choices: Sequence[int]) -> Configuration:
        """The operator's configuration that a configuration of the part stands for."""
        return Configuration(self.sketch, tuple(kept[choice] for kept, choice in zip(self.kept, choices, strict=True)))

    def restricted(self, operator: Operator) -> Operator:
        """The operator with this part for a space; its start is what lies nearest to the operator's first start."""
        sketch = operator.sketches[self.sketch]
        knobs = sketch.knobs
        part = replace(
            sketch,
            knobs=tuple(
                replace(knob, options=tuple(knob.options[i] for i in kept))
                for knob, kept in zip(knobs, self.kept, strict=True)
            ),
        )
        starts = [start for start in operator.start if start.sketch == self.sketch][:1]
        nearest = [
            tuple(int(np.argmin(_away(knob, start.choices[i])[list(self.kept[i])])) for i, knob in enumerate(knobs))
            for start in starts
        ] or [tuple(len(kept) // 2 for kept in self.kept)]
        return replace(operator, sketches=(part,), start=(Configuration(0, nearest[0]),))


def subspace(operator: Operator, good: Sequence[Configuration], size: int, seed: int) -> Subspace:
    """At most `size` configurations around `good`, which come best first; seeded.

    All in the sketch of the best. Each knob ranks its options: those of good configurations by the best that has
    them, then the others by the distance of their features from the best's option, ties at random. Starting from the
    best configuration, the knob with the smallest kept share of its options (in logarithms) takes its next one, while
    the product of the numbers of options stays within `size`.
    """
    best = good[0]
    sketch = operator.sketches[best.sketch]
    rng = np.random.default_rng([seed, operator.index])
    rows = [found.choices for found in good if found.sketch == best.sketch]
    ranked = [_ranked(knob, [row[i] for row in rows], rng) for i, knob in enumerate(sketch.knobs)]
    counts = [1] * len(ranked)
    while True:
        total = math.prod(counts)
        able = [
            i
            for i, options in enumerate(ranked)
            if counts[i] < len(options) and total // counts[i] * (counts[i] + 1) <= size
        ]
        if not able:
            break
        grown = min(able, key=lambda i: (math.log(counts[i]) / math.log(len(ranked[i])), i))
        counts[grown] += 1
    return Subspace(best.sketch, tuple(tuple(sorted(r[:n])) for r, n in zip(ranked, counts, strict=True)))


def _ranked(knob: Knob, good: Sequence[int], rng: np.random.Generator) -> list[int]:
    first = list(dict.fromkeys(good))
    away = _away(knob, first[0]) + 1e-6 * rng.random(len(knob.options))
    return first + [int(i) for i in np.argsort(away, kind="stable") if int(i) not in first]


def _away(knob: Knob, option: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Distance of every option from one, shape (options,)."""
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = (
        np.abs(knob.features - knob.features[option]).sum(axis=1).astype(np.float64)
    )
    return found
