"""What a tiled program asks of a GPU's multiprocessor.

A tiled loop nest of MetaSchedule's CUDA rules has spatial loops in five parts and reduction loops in three, ordered
S S S R R S R S: the first parts are blocks, the second virtual threads, the third threads, and what is left each thread
computes in registers. Inputs come through shared memory, a step of the first reduction part at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.engine.tiles import Counts, product

WARP, FEW = 32, 2
"""Threads that run together, and warps of results up to which TVM asks for no whole one."""
SPATIAL, REDUCTION = 5, 3
"""Parts of a tile."""


@dataclass(frozen=True)
class Bounds:
    """Of a block of threads: the most threads, and bytes of shared memory."""

    threads: int = 1024
    shared: int = 49152


@dataclass(frozen=True)
class Gpu:
    """How many multiprocessors it has, and the bounds of a block on one."""

    multiprocessors: int
    bounds: Bounds = Bounds()


@dataclass(frozen=True)
class Grid:
    """Of n tiled programs, each of shape (n,): results, blocks, threads of a block, sums of a thread, products that each of
    them adds up between two barriers, and about how many bytes of shared memory a block takes: of one factor the last axis is
    read, of the other all others, and a window's edges are not counted. `lines`: all and the threads along the last axis."""

    results: Counts
    blocks: Counts
    threads: Counts
    sums: Counts
    step: Counts
    shared: Counts
    lines: tuple[Counts, Counts]

    @classmethod
    def of(cls, tiles: Sequence[Counts]) -> Grid | None:
        """`tiles` are the factors of each tiled loop, shape (n, parts); None where nothing is tiled so."""
        spatial = [tile for tile in tiles if tile.shape[1] == SPATIAL]
        if not spatial:
            return None
        reduction = [tile for tile in tiles if tile.shape[1] == REDUCTION]
        step = product(reduction, 1) * product(reduction, 2) * np.ones(len(spatial[0]))
        within = [np.prod(tile[:, 1:], axis=1) for tile in spatial]
        shared = 4.0 * step * (within[-1] + np.prod(within[:-1], axis=0))
        sums = product(spatial, 1) * product(spatial, 3) * product(spatial, 4)
        lines = np.prod(spatial[-1], axis=1), spatial[-1][:, 2]
        blocks, threads = product(spatial, 0), product(spatial, 2)
        return cls(blocks * threads * sums, blocks, threads, sums, step, shared, lines)

    @property
    def least(self) -> Counts:
        """Threads that TVM asks of a block: a warp, but of operators with few results."""
        return np.where(self.results > FEW * WARP, float(WARP), 1.0)

    def fits(self, bounds: Bounds) -> NDArray[np.bool_]:
        """Whether TVM may take it, as far as can be told before it is scheduled: of what does a third is refused, of what does
        not nearly all."""
        fits: NDArray[np.bool_] = (
            (self.threads >= self.least) & (self.threads <= bounds.threads) & (self.shared <= bounds.shared)
        )
        return fits
