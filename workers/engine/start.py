"""First configurations that are already good, from rules of the machine instead of chance (see `rules`)."""

from __future__ import annotations

import numpy as np

from workers.engine.gpu import Gpu
from workers.engine.machine import Machine
from workers.engine.rules import rules_penalty
from workers.engine.space import Choices, Configuration, Sketch

DRAWS = 4096
SWEEPS = 8


def first_configurations(sketches: tuple[Sketch, ...], machine: Machine | Gpu, count: int) -> tuple[Configuration, ...]:
    """Up to `count` configurations, best guess first, dealt over the sketches in turn; deterministic."""
    ranked = [_ranked(sketch, machine, count) for sketch in sketches]
    dealt = [
        Configuration(number, tuple(int(c) for c in rows[turn]))
        for turn in range(count)
        for number, rows in enumerate(ranked)
        if turn < len(rows)
    ]
    return tuple(dealt[:count])


def _ranked(sketch: Sketch, machine: Machine | Gpu, count: int) -> Choices:
    rng = np.random.default_rng(0)
    drawn = np.unique(sketch.random(rng, min(DRAWS, 4 * sketch.size)), axis=0)
    best = drawn[np.argsort(rules_penalty(sketch, drawn, machine), kind="stable")[:count]]
    # Few draws keep every rule: each of the best descends to where changing one knob alone makes it no better.
    choices = np.unique([_descended(sketch, row, machine) for row in best], axis=0)
    choices = np.concatenate([choices, best[: count - len(choices)]])
    return choices[np.argsort(rules_penalty(sketch, choices, machine), kind="stable")]


def _descended(sketch: Sketch, row: Choices, machine: Machine | Gpu) -> Choices:
    """Coordinate descent on the penalty, from one configuration, shape (knobs,)."""
    for _ in range(SWEEPS):
        before = row
        for i, size in enumerate(sketch.sizes):
            beside = np.repeat(row[None], size, axis=0)
            beside[:, i] = np.arange(size)
            penalty = rules_penalty(sketch, beside, machine)
            if penalty.min() < penalty[row[i]]:
                row = beside[penalty.argmin()]
        if row is before:
            break
    return row
