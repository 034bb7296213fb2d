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

Counts = NDArray[np.float64]

WARP = 32
SPATIAL, REDUCTION = 5, 3
"""Parts of a tile."""


@dataclass(frozen=True)
class Gpu:
    """`multiprocessors` of it, and of a block the most `threads` and bytes of `shared` memory."""

    multiprocessors: int
    threads: int = 1024
    shared: int = 49152


@dataclass(frozen=True)
class Grid:
    """Of n tiled programs, each of shape (n,): blocks, threads of a block, sums of a thread, products that each of them adds up
    between two barriers, and about how many bytes of shared memory a block takes: of one factor the last axis is read, of the
    other all others, and a window's edges are not counted. `lines` are the tile and the threads along the last axis."""

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
        step = _product(reduction, 1) * _product(reduction, 2) * np.ones(len(spatial[0]))
        within = [np.prod(tile[:, 1:], axis=1) for tile in spatial]
        shared = 4.0 * step * (within[-1] + np.prod(within[:-1], axis=0))
        sums = _product(spatial, 1) * _product(spatial, 3) * _product(spatial, 4)
        lines = np.prod(spatial[-1], axis=1), spatial[-1][:, 2]
        return cls(_product(spatial, 0), _product(spatial, 2), sums, step, shared, lines)

    def fits(self, gpu: Gpu) -> NDArray[np.bool_]:
        """Whether TVM may take it, as far as can be told before it is scheduled: of what does a third is refused, of what does
        not nearly all."""
        fits: NDArray[np.bool_] = (self.threads >= WARP) & (self.threads <= gpu.threads) & (self.shared <= gpu.shared)
        return fits


def _product(tiles: Sequence[Counts], part: int) -> Counts:
    return np.prod([tile[:, part] for tile in tiles], axis=0) if tiles else np.ones(())
