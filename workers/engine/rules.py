"""What the machine asks of a configuration, said before anything is measured.

A tiled loop nest of MetaSchedule's CPU rules has spatial loops in four parts and reduction loops in two, ordered
S S R S R S: the innermost spatial parts are the register tile, the product of the third and fourth the cache tile, the
first part is what runs in parallel. The rules ask of a configuration what the hardware asks: whole vectors,
accumulators that fit the register file, a cache tile that fits the first-level cache, and enough parallel pieces for
every core.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from workers.engine.gpu import Gpu
from workers.engine.gpu_rules import gpu_penalty
from workers.engine.machine import Machine
from workers.engine.space import DIRECT, LATE, OUTSIDE, STRUCTURE, Choices, Knob, Sketch
from workers.engine.tiles import Counts, product

INLINED = -2
"""Where a block is computed anew for whatever reads it."""
ROOT = -1
"""Where a block is computed once, whole. Under a loop of an operator without tiles (a Softmax) it may be once an element."""
SHORT = 128
"""Steps of a convolution's reduction under which the best of recorded searches were seldom of the structure LATE."""
SUMS = 12
"""Accumulators to go for: of 16 registers 6 rows of 2 vectors were best, 0.91 of what 4 of 2 took for 14 x 14 places."""
WINDOW = 11 * 11
"""Steps of a depthwise convolution's reduction, at most."""
WINDOW_SUMS = 8
"""Accumulators to go for in one: all are of other numbers, but neighbours along a row share most of what they read."""
NARROW = (4, 8)
"""Lanes that there are registers of too, where the machine has wider ones."""
SHORTEST = 4
"""Numbers of the last part of a vector, see `tvm_backend.parts`: 20 are 16 and 4. Of fewer most would be a step each."""
REACH = 8.0
"""FLOP that a core does while a byte comes to it from beyond its second-level cache."""
STOCK = {"parallel": 16, "vectorize": 64}
"""What MetaSchedule itself takes, of pieces so many a core; a good first guess."""


def rules_tell(sketch: Sketch, machine: Machine | Gpu) -> bool:
    """Whether they foretell how programs of this sketch compare. Of loops without tiles on a processor they know what is
    usual, which orders the configurations of a pooling no better than chance does."""
    return isinstance(machine, Gpu) or any(_spatial(knob) for knob in sketch.knobs)


def rules_penalty(sketch: Sketch, choices: Choices, machine: Machine | Gpu) -> NDArray[np.float64]:
    """Lower is better, shape (n,); each rule broken costs about the factor of time it is expected to cost, in log2."""
    if isinstance(machine, Gpu):
        return gpu_penalty(sketch, choices, machine)
    values = sketch.values(choices)
    if not any(_spatial(knob) for knob in sketch.knobs):
        return _usual(sketch, choices, values, machine, ROOT)
    tiles = _Tiles(sketch, choices, values, machine)
    if _by_channel(sketch):
        return _usual(sketch, choices, values, machine, INLINED) + tiles.shared + tiles.windows
    return _usual(sketch, choices, values, machine, 1) + tiles.shared + tiles.products


def _usual(
    sketch: Sketch, choices: Choices, values: list[Counts], machine: Machine, location: int
) -> NDArray[np.float64]:
    """Of the knobs that are no tiles, what is usual; blocks are best computed at the `location`."""
    penalty = np.zeros(len(choices))
    for i, (knob, value) in enumerate(zip(sketch.knobs, values, strict=True)):
        if knob.kind == "location":
            penalty += 0.3 * np.abs(value[:, 0] - location)
        elif len(sketch.knobs) == 1 and knob.name == STRUCTURE:
            penalty += choices[:, i]  # programs that a rule of ours wrote out, the best guess first
        elif knob.name == STRUCTURE:
            penalty += 0.5 * _structured(sketch, choices, OUTSIDE)
        elif knob.name in STOCK:
            wanted = STOCK[knob.name] * (machine.cores if knob.name == "parallel" else 1)
            stock = sum(option[0] < wanted for option in knob.options[:-1])
            penalty += 0.5 * np.abs(choices[:, i] - stock)
        elif knob.kind == "category":
            middle = (len(knob.options) - 1) / 2
            penalty += 0.5 * np.abs(choices[:, i] - middle)
    return penalty


class _Tiles:
    """What the tiles of configurations, (n, knobs), come to. Each figure is of shape (n,)."""

    def __init__(self, sketch: Sketch, choices: Choices, values: list[Counts], machine: Machine) -> None:
        self._machine = machine
        self._spatial = [value for knob, value in zip(sketch.knobs, values, strict=True) if _spatial(knob)]
        self._reduction = [value for knob, value in zip(sketch.knobs, values, strict=True) if _reduced(knob)]
        self._steps = product(self._reduction, 0) * product(self._reduction, 1)
        self._late = _structured(sketch, choices, LATE)
        self._alone = DIRECT in sketch.structures
        self._vector = self._spatial[-1][:, 3]
        # Whole ones, and of what is left a power of two in each.
        self._registers = self._vector // machine.lanes + np.bitwise_count(self._vector.astype(int) % machine.lanes)
        self._narrow = (self._vector < machine.lanes) & np.isin(self._vector, NARROW)
        self._ragged = self._vector % SHORTEST != 0
        self._across = product(self._spatial[:-1], 3)
        self._sums = self._across * self._registers

    @property
    def shared(self) -> NDArray[np.float64]:
        """Whole vectors, and work for every core."""
        parallel = product(self._spatial, 0) * np.where(self._late, 1.0, product(self._spatial, 1))
        idle = np.log2(self._registers * self._machine.lanes / self._vector)
        penalty: NDArray[np.float64] = np.where(self._narrow, 2.5, 3.0) * idle + 2.0 * self._ragged
        penalty += 0.5 * np.maximum(0, np.log2(self._registers / 2))
        return penalty + 2.0 * np.maximum(0, np.log2(4 * self._machine.cores / parallel))

    @property
    def windows(self) -> NDArray[np.float64]:
        """Sums over windows, of each channel by itself: there is as much to read and to write as to add."""
        # Hardly any program that did not write its sums' epilogue at once, from registers, was among the best.
        penalty = 0.5 * np.log2(product(self._spatial, 2)) + np.where(self._late, 0.3, 0.0)
        penalty += 0.5 * np.abs(np.log2(self._sums / WINDOW_SUMS)) + 2.0 * (self._sums > self._machine.registers)
        # A core goes through a band of the picture, and sums lie side by side in a row.
        bands = product(self._spatial[:-2], 0)
        penalty += 0.4 * np.maximum(0, np.log2(4 * self._machine.cores / bands))
        return penalty + 0.2 * np.log2(product(self._spatial[:-2], 3))

    @property
    def products(self) -> NDArray[np.float64]:
        """Sums over channels, each of which many others read too."""
        spatial, reduction, machine = self._spatial, self._reduction, self._machine
        inner_reduction = product(reduction, 1)
        block = product(spatial, 2) * product(spatial, 3) * 4.0
        goal = max(SUMS, 0.5 * machine.registers)
        # What is left of a vector in parts of two and one costs as much as whole vectors, in every row.
        penalty: NDArray[np.float64] = 2.0 * np.log2(self._across) * self._ragged
        # Sums that nothing follows are copied from where they were added, which few of the first parts only delay.
        penalty += 0.3 * self._late * self._alone
        outer = product(spatial[:-2], 3)
        if len(reduction) == 1:
            # Products of one batch share nothing: side by side they take turns in evicting each other's operands.
            penalty += np.log2(outer) + np.log2(product(spatial[:-2], 2))
            # Nor is anything kept from one sweep over the batch to the next: one sweep, product by product, reads in order.
            penalty += 0.3 * np.log2(product(spatial[-2:], 0)) * (product(spatial[:-2], 1) > 1)
        else:
            # Rows of an image lie a power of two apart, or nearly: many at a time meet in the same lines of the cache.
            penalty += 0.4 * np.log2(outer)
            # The shorter a reduction, the more of the time is the epilogue's: of a tile at once it is vectors in a row.
            penalty += 0.25 * np.maximum(0, np.log2(SHORT / self._steps)) * self._late
        # Accumulators of more than one register tile leave the registers with every step of the outer reduction.
        penalty += 0.5 * np.log2(product(spatial, 2)) * (product(reduction, 0) > 1)
        # Beside the accumulators, a vector of weights for each of theirs across and the input that meets them.
        held = self._sums + self._registers + 1
        penalty += np.abs(np.log2(self._sums / goal)) + (held > machine.registers) * (
            2.0 + 2.0 * np.log2(held / machine.registers)
        )
        # Rather 8 by 2 than 16 by 1 or 4 by 4: rows of a matrix lie a power of two apart, and many of them meet in one line.
        penalty += 0.5 * np.maximum(0, np.log2(self._across / 8))
        penalty += np.maximum(0, np.log2(block / (machine.cache / 2)))
        penalty += 0.25 * np.maximum(0, np.log2(8 / inner_reduction))
        return penalty + np.log2(1 + REACH * self._fetched)

    @property
    def _fetched(self) -> NDArray[np.float64]:
        """Bytes a FLOP that come from beyond the second-level cache, of sums with the channels last: weights once, or for each
        row of the loops within which all of them that are read do not stay there; and what they meet once, or so for each
        column of the first parts."""
        if len(self._spatial) < 2 or not self._channels_last:
            return np.zeros(())
        held, columns = self._machine.second, self._spatial[-1]
        rows = self._spatial[-2:-1] if len(self._reduction) == 1 else self._spatial[:-1]
        first, second = product(rows, 0), product(rows, 1)
        band = second * product(rows, 2) * product(rows, 3)
        strip = 4.0 * self._steps * columns[:, 1:].prod(axis=1)
        weights = strip * columns[:, 0]
        read = weights * np.where(weights > held, first, 1.0) * np.where(strip > held, second, 1.0)
        met = 4.0 * band * self._reduction[-1].prod(axis=1)
        read += met * first * np.where(met > held, columns[:, 0], 1.0)
        return np.asarray(read / (2.0 * self._steps * first * band * columns.prod(axis=1)))

    @property
    def _channels_last(self) -> bool:
        """Sums over a window have its channels as their last loop then, and a window is narrower than it has channels."""
        outermost, innermost = self._reduction[0], self._reduction[-1]
        return bool(outermost[0].prod() <= innermost[0].prod())


def _by_channel(sketch: Sketch) -> bool:
    """Whether sums are of one channel each, as those of a depthwise convolution with the channels last."""
    steps = [prod(knob.options[0]) for knob in sketch.knobs if _reduced(knob)]
    return len(steps) == 3 and steps[2] == 1 < min(steps[:2]) and steps[0] * steps[1] <= WINDOW


def _spatial(knob: Knob) -> bool:
    """Whether it tiles a spatial loop."""
    return knob.kind == "tile" and len(knob.options[0]) == 4


def _reduced(knob: Knob) -> bool:
    """Whether it tiles a loop of sums."""
    return knob.kind == "tile" and len(knob.options[0]) == 2


def _structured(sketch: Sketch, choices: Choices, wanted: str) -> NDArray[np.bool_]:
    """Whether each choice takes the `wanted` structure; of a sketch without that knob none does."""
    place = next((place for place, knob in enumerate(sketch.knobs) if knob.name == STRUCTURE), None)
    if place is None or wanted not in sketch.structures:
        return np.zeros(len(choices), bool)
    options = np.asarray([value for (value,) in sketch.knobs[place].options])
    return np.asarray(options[choices[:, place]] == sketch.structures.index(wanted))
