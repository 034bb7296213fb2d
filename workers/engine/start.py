"""First configurations that are already good, from rules of the machine instead of chance.

A tiled loop nest of MetaSchedule's CPU rules has spatial loops in four parts and reduction loops in two, ordered
S S R S R S: the innermost spatial parts are the register tile, the product of the third and fourth the cache tile, the
first part is what runs in parallel. The rules ask of a configuration what the hardware asks: whole vectors,
accumulators that fit the register file, a cache tile that fits the first-level cache, and enough parallel pieces for
every core.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Configuration, Sketch

DRAWS = 4096
ROOT = -1
"""Where a block is computed once, whole. Under a loop of an operator without tiles (a Softmax) it may be once an element."""
BATCHED = (3, 1)
"""Spatial and reduction loops of a batch of matrix products."""
STOCK = {"parallel": 16, "vectorize": 64}
"""What MetaSchedule itself takes (pieces: times the cores, the least that is as many); a good first guess."""


@dataclass(frozen=True)
class Machine:
    """What the rules need to know: vector lanes of float32, vector registers, cores, first-level cache in bytes."""

    lanes: int = 8
    registers: int = 16
    cores: int = 1
    cache: int = 32768


def first_configurations(sketches: tuple[Sketch, ...], machine: Machine, count: int) -> tuple[Configuration, ...]:
    """Up to `count` configurations, best guess first, dealt over the sketches in turn; deterministic."""
    ranked = [_ranked(sketch, machine, count) for sketch in sketches]
    dealt = [
        Configuration(number, tuple(int(c) for c in rows[turn]))
        for turn in range(count)
        for number, rows in enumerate(ranked)
        if turn < len(rows)
    ]
    return tuple(dealt[:count])


def _ranked(sketch: Sketch, machine: Machine, count: int) -> Choices:
    rng = np.random.default_rng(0)
    choices = np.unique(sketch.random(rng, min(DRAWS, 4 * sketch.size)), axis=0)
    scores = _penalty(sketch, choices, machine)
    return choices[np.argsort(scores, kind="stable")[:count]]


def _penalty(sketch: Sketch, choices: Choices, machine: Machine) -> NDArray[np.float64]:
    """Lower is better, shape (n,); each rule broken costs about the factor of time it is expected to cost, in log2."""
    tiles = [
        np.asarray(knob.options, dtype=np.float64)[choices[:, i]]
        for i, knob in enumerate(sketch.knobs)
        if knob.kind == "tile"
    ]
    penalty = np.zeros(len(choices))
    for i, knob in enumerate(sketch.knobs):
        if knob.kind == "location":
            places = np.asarray([option[0] for option in knob.options], dtype=np.float64)[choices[:, i]]
            penalty += 0.3 * np.abs(places - (1 if tiles else ROOT))
        elif knob.name == "structure":
            penalty += 0.5 * (choices[:, i] == 0)  # MetaSchedule's first one leaves the epilogue outside the tile
        elif knob.name in STOCK:
            stock = [option[0] for option in knob.options].index(
                min(v[0] for v in knob.options if v[0] >= STOCK[knob.name])
            )
            penalty += 0.5 * np.abs(choices[:, i] - stock)
        elif knob.kind == "category":
            middle = (len(knob.options) - 1) / 2
            penalty += 0.2 * np.abs(choices[:, i] - middle)
    spatial = [tile for tile in tiles if tile.shape[1] == 4]
    if not spatial:
        return penalty
    reduction = [tile for tile in tiles if tile.shape[1] == 2]
    vector = spatial[-1][:, 3]
    whole = np.ceil(vector / machine.lanes)
    across = np.prod([tile[:, 3] for tile in spatial[:-1]], axis=0)
    registers = across * whole
    parallel = np.prod([tile[:, 0] * tile[:, 1] for tile in spatial], axis=0)
    inner_reduction = np.prod([tile[:, 1] for tile in reduction], axis=0) if reduction else np.ones(len(choices))
    block = np.prod([tile[:, 2] * tile[:, 3] for tile in spatial], axis=0) * 4.0
    goal = 0.6 * machine.registers
    penalty += 3.0 * np.log2(whole * machine.lanes / vector)
    # Accumulators that are no whole vectors do not stay in registers: more than one a step is a trip to memory each.
    penalty += 2.0 * np.log2(across) * (vector % machine.lanes != 0)
    if (len(spatial), len(reduction)) == BATCHED:
        # Products of one batch share nothing: side by side in registers they take turns in evicting each other's operands.
        penalty += np.log2(spatial[0][:, 3])
    penalty += np.abs(np.log2(registers / goal)) + 2.0 * np.maximum(0, np.log2(registers / machine.registers))
    penalty += 2.0 * np.maximum(0, np.log2(4 * machine.cores / parallel))
    penalty += np.maximum(0, np.log2(block / (machine.cache / 2)))
    penalty += 0.25 * np.maximum(0, np.log2(8 / inner_reduction))
    return penalty
