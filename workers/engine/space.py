"""The design space of an operator: sketches, their knobs, and configurations (Chameleon 2.2, Table 1).

A configuration is a sketch and one choice a knob. Thousands are scored without lowering one, so features are table
look-ups: each knob carries a row of features per option.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workers.engine.gpu import Bounds, Gpu, Grid
from workers.engine.machine import Machine

Choices = NDArray[np.int32]
Features = NDArray[np.float32]

_GRID_LIMIT = 100_000
_TRIES = 16
"""Draws, of each of which a tenth or more lies within a GPU's bounds."""

PRODUCTS = re.compile("conv|matmul|dense|gemm")
"""In the names of convolutions and dense layers, all that the papers tune. A convolution's transforms by Winograd are none:
they have a single configuration."""

STRUCTURE = "structure"
"""Name of the knob that chooses among an operator's programs which differ in their structure alone."""
OUTSIDE, DIRECT, FUSED, LATE = "outside", "direct", "fused", "late"
"""Where what follows a sum is written: after all tiles, or nothing follows and the sums lie there all the time; within each
tile; or within the first parts of the loops only, which alone run in parallel then."""
STRUCTURES = (OUTSIDE, FUSED, LATE)
"""Of an operator whose last block is no sum."""

SPACE_VERSION = 4
"""Raised when an option of a knob makes another program than before, or a program's time means something else."""


@lru_cache(maxsize=4096)
def tilings(extent: int, parts: int, innermost: float = math.inf) -> tuple[tuple[int, ...], ...]:
    """Every ordered factorisation of a loop's extent into so many parts whose last is at most `innermost`, sorted."""
    if parts == 1:
        return ((extent,),) if extent <= innermost else ()
    divisors = [part for part in range(1, extent + 1) if extent % part == 0]
    return tuple((part, *rest) for part in divisors for rest in tilings(extent // part, parts - 1, innermost))


@dataclass(frozen=True, order=True)
class Configuration:
    """A point of an operator's space: `choices[i]` indexes the options of knob i of sketch `sketch`."""

    sketch: int
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Knob:
    """One decision of a sketch. `options` are the tile factors, the category or the location an option stands for.

    Options of a tile are ordered so that neighbours are similar (lexicographic in the factors).
    """

    name: str
    kind: Literal["tile", "category", "location"]
    options: tuple[tuple[int, ...], ...]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """Shape (options, numbers): what each option stands for."""
        return np.asarray(self.options, dtype=np.float64)

    @cached_property
    def features(self) -> Features:
        """Shape (options, columns): log2 of tile factors; the value itself for categories and locations."""
        values = self.values
        if self.kind == "tile":
            # Cumulative products say how large a block is at each level, which is what caches and registers see.
            inner = np.cumprod(values[:, ::-1], axis=1)[:, ::-1]
            values = np.concatenate([np.log2(values), np.log2(inner[:, 1:])], axis=1)
        elif self.kind == "category":
            values = np.log2(np.maximum(values, 0) + 1)
        return values.astype(np.float32)


@dataclass(frozen=True)
class Sketch:
    """The knobs of one program structure; zero knobs make a space of one configuration. Programs beyond a GPU's `bounds` lie in
    the space, but are not drawn. With tiles, `structures` says where the options of the knob STRUCTURE write what follows a
    sum."""

    knobs: tuple[Knob, ...]
    bounds: Bounds | None = None
    structures: tuple[str, ...] = STRUCTURES

    @cached_property
    def sizes(self) -> Choices:
        """Shape (knobs,): number of options of each knob."""
        return np.asarray([len(knob.options) for knob in self.knobs], dtype=np.int32)

    @property
    def size(self) -> int:
        """Number of configurations of this sketch."""
        return math.prod(int(n) for n in self.sizes)

    @cached_property
    def width(self) -> int:
        """Number of feature columns."""
        return sum(knob.features.shape[1] for knob in self.knobs)

    @property
    def tables(self) -> tuple[Features, ...] | None:
        """Of each knob, the features (options, columns) of its options, which are those of a choice side by side; None where a
        choice's are no such thing."""
        return tuple(knob.features for knob in self.knobs)

    def features(self, choices: Choices) -> Features:
        """Features of `choices` (n, knobs), as (n, width)."""
        if not self.knobs:
            return np.zeros((len(choices), 0), dtype=np.float32)
        return np.concatenate([knob.features[choices[:, i]] for i, knob in enumerate(self.knobs)], axis=1)

    def values(self, choices: Choices) -> list[NDArray[np.float64]]:
        """What the options of `choices` (n, knobs) stand for: of each knob (n, numbers of its options)."""
        return [knob.values[choices[:, i]] for i, knob in enumerate(self.knobs)]

    def runnable(self, choices: Choices) -> Choices:
        """Those of `choices` that are drawn."""
        if self.bounds is None or (grid := Grid.of(self.values(choices))) is None:
            return choices
        return choices[grid.fits(self.bounds)]

    def random(self, rng: np.random.Generator, count: int) -> Choices:
        """`count` uniform choices, as (count, knobs); within bounds where these leave as many."""
        drawn = self._any(rng, count)
        if self.bounds is None:
            return drawn
        within = self.runnable(drawn)
        for _ in range(_TRIES):
            if len(within) >= count:
                break
            within = np.concatenate([within, self.runnable(self._any(rng, count))])
        return np.concatenate([within, drawn])[:count]

    def _any(self, rng: np.random.Generator, count: int) -> Choices:
        return rng.integers(0, self.sizes, size=(count, len(self.knobs)), dtype=np.int32)

    def grid(self) -> Choices:
        """All choices in lexicographic order, as (size, knobs); only for sketches small enough to enumerate."""
        if not self.enumerable:
            raise ValueError(
                f"a sketch of {self.size} configurations is too large to enumerate; draw at random instead"
            )
        cells = np.unravel_index(np.arange(self.size), tuple(int(n) for n in self.sizes)) if self.knobs else ()
        return np.stack(cells, axis=1).astype(np.int32) if self.knobs else np.zeros((1, 0), dtype=np.int32)

    @property
    def enumerable(self) -> bool:
        """Whether `grid` is affordable (a few megabytes and milliseconds)."""
        return self.size <= _GRID_LIMIT

    def unvisited(
        self, rng: np.random.Generator, count: int, visited: Collection[tuple[int, ...]], rounds: int = 32
    ) -> Choices:
        """Up to `count` distinct random choices outside `visited`, as (n, knobs), within bounds; fewer only when (nearly) none
        is left, and others where none of these is: an operator that has none ends as one whose configurations fail."""
        if self.enumerable and (self.size <= 4 * count or 4 * len(visited) >= self.size):
            grid = rng.permutation(self.grid())
            rows = _new(self.runnable(grid), visited) or _new(grid, visited)
        else:
            found: dict[tuple[int, ...], None] = {}
            for _ in range(rounds):
                drawn = self.random(rng, count)
                found.update(dict.fromkeys(_new(self.runnable(drawn), visited)))
                if len(found) >= count:
                    break
            rows = list(found or dict.fromkeys(_new(drawn, visited)))
        rows = rows[:count]
        return np.asarray(rows, dtype=np.int32).reshape(len(rows), len(self.knobs))


def _new(choices: Choices, visited: Collection[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of `choices` (n, knobs) that are not `visited`, in their order."""
    return [row for row in map(tuple, choices.tolist()) if row not in visited]


@dataclass(frozen=True)
class Operator:
    """One tunable tensor program of the network.

    `weight` is how often the network runs it; `work` is max(FLOPs, bytes x machine balance), in FLOP, so that operators
    without arithmetic have a speed too; of whole numbers, of which instructions add up more products `at_once` than the one
    of float32, it is so much less. `start` are configurations worth measuring first, best guess first. The `machine` is what
    rules need to know of where it runs; None where that is not known.
    """

    index: int
    name: str
    key: str
    weight: int
    flops: float
    bytes: float
    work: float
    sketches: tuple[Sketch, ...]
    start: tuple[Configuration, ...]
    at_once: int = 1
    machine: Machine | Gpu | None = None

    @property
    def size(self) -> int:
        """Number of configurations over all sketches."""
        return sum(sketch.size for sketch in self.sketches)

    @property
    def computes(self) -> bool:
        """Whether it is a convolution or a dense layer, by its name."""
        return bool(PRODUCTS.search(self.name))

    def holds(self, configuration: Configuration) -> bool:
        """Whether a configuration lies in this space, which what was read back or recorded need not."""
        if not 0 <= configuration.sketch < len(self.sketches):
            return False
        sizes, choices = self.sketches[configuration.sketch].sizes, configuration.choices
        return len(choices) == len(sizes) and all(0 <= c < n for c, n in zip(choices, sizes, strict=True))
