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

from workers.tvm_backend.blocks import KEPT, SUMMED, blocks

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
    for variable, function in mod.functions_items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        sums = [block for block in blocks(function) if block.init is not None]
        if len(sums) == 1 and _keeps_the_last_axis(sums[0]):
            schedule = Schedule(tvm.IRModule({"main": function}))
            block = schedule.get_sblock(sums[0].name_hint)
            schedule.annotate(block, "schedule_rule", RULE)
            schedule.annotate(block, CORES, cores)
            mod[variable] = schedule.mod["main"]
    return mod


def _keeps_the_last_axis(block: Any) -> bool:
    """Whether it reads one tensor, element by element, and there are whole vectors of what it keeps of the last axis."""
    loads: list[Any] = []
    structural_walk(block.body, [(ir.TensorLoad, loads.append)])
    written = {write.source for write in block.writes}
    read = [load for load in loads if load.source not in written]
    kept, summed = (_of(block.iter_vars, block.iter_vars, kind) for kind in (KEPT, SUMMED))
    if len(read) != 1 or not kept or _length(summed) == 1:
        return False
    variables = {one.var for one in (*kept, *summed)}
    indices = list(read[0].indices)
    by_element = all(index in variables or isinstance(index, tirx.IntImm) for index in indices)
    return by_element and indices[-1].same_as(kept[-1].var) and bool(_widths(_extent(kept[-1])))


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
    variables = found.iter_vars
    channels = _extent(_of(variables, variables, KEPT)[-1])
    length = _length(_of(variables, variables, SUMMED))
    ways = [(pieces, width) for pieces in _pieces(length, cores) for width in _widths(channels)]
    ways.sort(key=lambda way: way[0] * (channels // way[1]) < cores)
    return [_scheduled(schedule.copy(), block, *way) for way in ways]


def _scheduled(schedule: Schedule, block: Any, pieces: int, width: int) -> Schedule:
    variables, loops = schedule.get(block).iter_vars, schedule.get_loops(block)
    kept, summed = (schedule.fuse(*_of(loops, variables, kind)) for kind in (KEPT, SUMMED))
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


def _of(loops: Sequence[Any], variables: Sequence[Any], kind: int) -> list[Any]:
    """Those of a block's `loops`, one a variable, that run over variables of this kind."""
    return [loop for loop, variable in zip(loops, variables, strict=True) if variable.iter_type == kind]


def _length(summed: Sequence[Any]) -> int:
    return math.prod(_extent(one) for one in summed)


def _extent(variable: Any) -> int:
    return int(variable.dom.extent)
