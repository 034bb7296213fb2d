"""Sums over all axes but the last ones, as global pooling and squeeze-and-excitation make of a layer in NHWC.

TVM's rules for a processor give each channel to a core whole, or break its sum in pieces and take them channel by channel:
either way one value of each cache line is read at a time. A vector of channels at a time, of a piece of the sum, takes a
twentieth of that: 9 in place of 174 us for 112 x 112 x 32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import ir, tirx
from tvm.s_tir import Schedule
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import BY, KEPT, SUMMED, annotated, blocks, extents

RULE = "outer_sum"
CORES = "outer_sum_cores"
"""Annotation: how many there are."""
WIDTHS = (64, 32, 16)
"""Channels at a time, at most; each as many as divide all."""
NARROWEST = 8
PIECES = (1, 4)
"""Pieces of a sum for each core, at least; or it is taken whole."""


def marked(mod: tvm.IRModule, cores: int) -> tvm.IRModule:
    """With such sums named for the rule below."""

    def notes(function: tirx.PrimFunc) -> dict[str, dict[str, Any]]:
        sums = [block for block in blocks(function) if block.init is not None]
        if len(sums) != 1 or not _keeps_the_last_axis(sums[0]):
            return {}
        return {sums[0].name_hint: {BY: RULE, CORES: cores}}

    return annotated(mod, notes)


def _keeps_the_last_axis(block: Any) -> bool:
    """Whether it reads one tensor, element by element, and there are whole vectors of what it keeps of the last axis."""
    loads: list[Any] = []
    structural_walk(block.body, [(ir.TensorLoad, loads.append)])
    written = {write.source for write in block.writes}
    read = [load for load in loads if load.source not in written]
    kept = _of(block.iter_vars, block, KEPT)
    if len(read) != 1 or not kept or math.prod(extents(block, SUMMED)) == 1:
        return False
    variables = {one.var for one in block.iter_vars}
    indices = list(read[0].indices)
    by_element = all(index in variables or isinstance(index, tirx.IntImm) for index in indices)
    return by_element and indices[-1].same_as(kept[-1].var) and bool(_widths(extents(block, KEPT)[-1]))


def _widths(channels: int) -> list[int]:
    """Channels at a time, the most first."""
    divisors = [width for width in range(NARROWEST, WIDTHS[0] + 1) if channels % width == 0]
    fitting = (max((width for width in divisors if width <= most), default=0) for most in WIDTHS)
    return [width for width in dict.fromkeys(fitting) if width]


def _pieces(length: int, cores: int) -> list[int]:
    """What a sum of this length is broken into, the fewest first."""
    divisors = [count for count in range(2, length) if length % count == 0]
    wanted = (next((count for count in divisors if count >= times * cores), 1) for times in PIECES)
    return list(dict.fromkeys((1, *wanted)))


@tvm.register_global_func(f"s_tir.meta_schedule.cpu.{RULE}", override=True)  # type: ignore[untyped-decorator]
def _schedule(schedule: Schedule, block: Any) -> list[Schedule]:
    """One program for each number of pieces and of channels at a time; those that leave a core idle come last."""
    found = schedule.get(block)
    cores = int(found.annotations[CORES])
    schedule.unannotate(block, CORES)
    channels, length = extents(found, KEPT)[-1], math.prod(extents(found, SUMMED))
    ways = [(pieces, width) for pieces in _pieces(length, cores) for width in _widths(channels)]
    ways.sort(key=lambda way: way[0] * (channels // way[1]) < cores)
    return [_scheduled(schedule.copy(), block, *way) for way in ways]


def _scheduled(schedule: Schedule, block: Any, pieces: int, width: int) -> Schedule:
    loops, found = schedule.get_loops(block), schedule.get(block)
    kept, summed = (schedule.fuse(*_of(loops, found, kind)) for kind in (KEPT, SUMMED))
    if pieces > 1:
        piece, _ = schedule.split(summed, [pieces, None])
        part = schedule.rfactor(piece, 0)
        kept, piece, summed = schedule.get_loops(part)
        outer, vector = schedule.split(kept, [None, width])
        schedule.reorder(piece, outer, summed, vector)
        schedule.parallel(schedule.fuse(piece, outer))
        schedule.vectorize(vector)
        kept, summed = schedule.get_loops(block)
    outer, vector = schedule.split(kept, [None, width])
    schedule.reorder(outer, summed, vector)
    if pieces == 1:
        schedule.parallel(outer)
    schedule.vectorize(vector)
    return schedule


def _of(loops: Sequence[Any], block: Any, kind: int) -> list[Any]:
    """Those of a block's `loops`, one an axis, that run over axes of this kind."""
    return [loop for loop, axis in zip(loops, block.iter_vars, strict=True) if axis.iter_type == kind]
