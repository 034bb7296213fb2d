"""What a GPU asks of a configuration (see `gpu` for its programs)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workers.engine.gpu import WARP, Gpu, Grid
from workers.engine.space import STRUCTURE, Choices, Sketch
from workers.engine.tiles import Counts

FORBIDDEN = 8.0
"""For each doubling beyond what the hardware has: such a program is refused."""
THREADS, SUMS, STEP = 128, 8, 16
"""To go for, of a block, of a thread, and of a reduction between two barriers."""
FETCHED, UNROLLED = 2, 64
"""Numbers that a thread fetches at once, and statements that are unrolled."""
ROUNDS = 4
"""Of blocks on all multiprocessors, after which it counts little that the last one leaves some of them idle."""
MOST_SUMS = 64


def gpu_penalty(sketch: Sketch, choices: Choices, gpu: Gpu) -> NDArray[np.float64]:
    """Lower is better, shape (n,); each rule broken costs about the factor of time it is expected to cost, in log2."""
    values = sketch.values(choices)
    penalty = np.zeros(len(choices))
    for knob, value in zip(sketch.knobs, values, strict=True):
        if knob.name == STRUCTURE:
            penalty += 0.2 * value[:, 0]
        elif knob.kind == "category":
            # Threads begin at 4 or more; of what is no float32 up to 16 numbers are fetched.
            least = min(knob.options)[0]
            wanted = UNROLLED if least == 0 else FETCHED if least == 1 else THREADS
            penalty += 0.2 * np.abs(np.log2((value[:, 0] + 1) / (wanted + 1)))
            penalty += 0.5 * (value[:, 0] == 3)  # no vector has three numbers
    grid = Grid.of(values)
    if grid is None:
        return penalty
    bounds = gpu.bounds
    penalty += FORBIDDEN * (_above(grid.threads, bounds.threads) + _above(grid.least / grid.threads, 1))
    penalty += 0.5 * np.abs(np.log2(grid.threads / THREADS))
    penalty += np.log2(np.ceil(grid.threads / WARP) * WARP / grid.threads)
    # Multiprocessors without a block are idle, and so are most of them while the last blocks run.
    rounds = np.ceil(grid.blocks / gpu.multiprocessors)
    penalty += np.log2(rounds * gpu.multiprocessors / grid.blocks) * np.where(rounds > ROUNDS, 0.25, 1.0)
    penalty += 0.4 * np.abs(np.log2(grid.sums / SUMS)) + _above(grid.sums, MOST_SUMS)
    penalty += 0.2 * np.abs(np.log2(grid.step / STEP))
    penalty += FORBIDDEN * _above(grid.shared, bounds.shared) + 0.5 * _above(grid.shared, bounds.shared / 4)
    # Neighbouring threads read and write neighbouring numbers.
    line, threads = grid.lines
    return penalty + 0.5 * _above(np.minimum(WARP, line) / threads, 1)


def _above(value: Counts, bound: float) -> Counts:
    """Doublings above it."""
    return np.maximum(0.0, np.log2(value / bound))
