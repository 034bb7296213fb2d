"""Where walks begin, and which sketches need no walk."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from workers.engine.explorer.pool import Pool, rows_of
from workers.engine.explorer.trace import Trace
from workers.engine.ports import Score
from workers.engine.space import Choices, Sketch


def elites(sketch: Sketch, score: Score, visited: Collection[tuple[int, ...]], count: int) -> Choices:
    """At most `count` of the visited configurations, best score first, of equals the first by their choices."""
    count = min(count, len(visited))
    if not count:
        return np.zeros((0, len(sketch.knobs)), dtype=np.int32)
    rows = rows_of(visited, len(sketch.knobs))
    known = rows[np.lexsort(rows.T[::-1])]
    return known[np.argsort(-score(known), kind="stable")[:count]]


def exhaust(sketch: Sketch, score: Score, pool: Pool, affordable: int) -> Trace | None:
    """Scores the whole sketch when it has at most `affordable` configurations or no knob that moves; else None."""
    if (sketch.sizes > 1).any() and not (sketch.enumerable and sketch.size <= affordable):
        return None
    grid, trace = sketch.grid(), Trace()
    trace.step(pool, 0)  # it begins with nothing: the best is met in the step that scores all
    pool.offer(grid, score(grid))
    trace.step(pool, len(grid))
    return trace
