"""Softmax, layer normalisation and their like: rows that are summed up, and computed anew by what they sum up to.

By TVM's rules for a processor first configurations compute each step for all rows before the next one, and sum number by
number. Here a core takes row by row through all steps, which lies in the first-level cache all the while, and sums are
vectors: rows of 49 to 768 take a fourth to a ninth of that, and a third to all of what dozens of configurations find.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm.s_tir import Schedule
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import BY, KEPT, SUMMED, annotated, blocks, extents, has_results_beside

RULE, LEFT = "rows_step_by_step", "None"
"""Values of the annotation by which a block is scheduled: by the rule below, or with another by that."""
WIDTHS = (32, 16)
"""Sums of a row that are added up side by side, at most."""
NARROWEST = 7
SHORTEST = 16
"""Numbers of a row: of two or three, as the classes of an anchor, TVM takes vectors of rows."""
HALVED = 4
"""So many of them are added up side by side in turn, where they are a multiple: in a row each waits for the one before."""
VECTOR = 64
"""Numbers of a row at a time, at most; each as many as divide it."""


def marked(mod: tvm.IRModule, cores: int) -> tvm.IRModule:
    """With such operators named for the rule below, where there are rows for each of the `cores`."""

    def notes(function: tirx.PrimFunc) -> dict[str, dict[str, str]]:
        if (rows := _rows(function)) is None or rows < cores:
            return {}
        *steps, last = (block.name_hint for block in blocks(function))
        return {**{step: {BY: LEFT} for step in steps}, last: {BY: RULE}}

    return annotated(mod, notes)


def _rows(function: tirx.PrimFunc) -> int | None:
    """How many rows an operator has whose steps are each over rows or what rows sum up to; None for another operator."""
    found = blocks(function)
    sums = [block for block in found if block.init is not None]
    if not sums or found[-1].init is not None or len({block.name_hint for block in found}) < len(found):
        return None
    summed = extents(sums[0], SUMMED)
    whole = extents(found[-1], KEPT)
    kept = whole[: -len(summed)]
    if not kept or whole[-len(summed) :] != summed or math.prod(summed) < SHORTEST or has_results_beside(function):
        return None
    constants = [one for one in function.params if len(one.shape) < len(whole)]
    for block in found:
        own, over = extents(block, KEPT), extents(block, SUMMED)
        of_rows = own[: len(kept)] == kept and set(own[len(kept) :]) <= {1}
        steps = of_rows and over == summed if block.init is not None else of_rows or own == whole
        if not (steps and _reads_its_row(block, kept, constants)):
            return None
    return math.prod(kept)


def _reads_its_row(block: Any, kept: list[int], constants: list[Any]) -> bool:
    """Whether a step reads what has rows row by row: the middle one of three axes may be as long as the last one."""
    axes = [one.var for one in block.iter_vars if one.iter_type == KEPT]
    read = [read for read in block.reads if not any(map(read.source.same_as, constants))]
    of_rows = [one for one in read if [int(n) for n in one.source.shape[: len(kept)]] == kept]
    places = [(at.min, axis) for one in of_rows for at, axis in zip(one.region, axes[: len(kept)], strict=False)]
    return all(isinstance(place, tirx.IntImm) or place.same_as(axis) for place, axis in places)


def _widths(row: int) -> list[int]:
    """Sums side by side, the most first; one after the other where nothing else divides a row."""
    fitting = (max(n for n in range(1, most + 1) if row % n == 0 and n < row) for most in WIDTHS)
    return [width for width in dict.fromkeys(fitting) if width >= NARROWEST] or [1]


@tvm.register_global_func(f"s_tir.meta_schedule.cpu.{RULE}", override=True)  # type: ignore[untyped-decorator]
def _schedule(schedule: Schedule, last: Any) -> list[Schedule]:
    """One program for each number of sums side by side."""
    summed = next(extents(block, SUMMED) for block in blocks(schedule.mod["main"]) if block.init is not None)
    return [_scheduled(schedule.copy(), last, len(summed), width) for width in _widths(math.prod(summed))]


def _scheduled(schedule: Schedule, last: Any, axes: int, width: int) -> Schedule:
    """With rows of so many `axes`."""
    *steps, final = blocks(schedule.mod["main"])
    whole = extents(final, KEPT)
    each = schedule.fuse(*schedule.get_loops(last)[:-axes])
    schedule.parallel(each)
    placed = [last]
    for step in reversed(steps):
        block = schedule.get_sblock(step.name_hint)
        if step.init is not None:
            parts = _side_by_side(schedule, block, axes, width)
        elif extents(step, KEPT) == whole and len(schedule.get_consumers(block)) == 1:
            schedule.compute_inline(block)
            parts = []
        else:
            parts = [block]
        for part in parts:
            schedule.compute_at(part, each)
        placed += parts
    for block in placed:
        _vectorized(schedule, block)
    return schedule


def _side_by_side(schedule: Schedule, block: Any, axes: int, width: int) -> list[Any]:
    """The sum, and before it what it sums up: as many sums as are taken at a time, or first some of these."""
    summed, last = schedule.fuse(*schedule.get_loops(block)[-axes:]), len(schedule.get(block).writes[0].source.shape)
    if width == 1:
        return [block]
    if width % HALVED:
        _, beside = schedule.split(summed, [None, width])
        return [block, schedule.rfactor(beside, last)]
    _, _, beside = schedule.split(summed, [None, width // HALVED, HALVED])
    some = schedule.rfactor(beside, last)
    return [block, some, schedule.rfactor(schedule.get_loops(some)[-2], last)]


def _vectorized(schedule: Schedule, block: Any) -> None:
    """What a step does within a row: sums one by one, side by side what is kept."""
    loops, running = schedule.get_loops(block)[1:], _summed_over(schedule, block)
    variables = [schedule.get(loop).loop_var for loop in loops]
    along = [any(map(variable.same_as, running)) for variable in variables]
    kept = [loop for loop, summed in zip(loops, along, strict=True) if not summed]
    if not kept:
        return
    beside = schedule.fuse(*kept)
    schedule.reorder(*(loop for loop, summed in zip(loops, along, strict=True) if summed), beside)
    length = int(schedule.get(beside).extent)
    most = max(n for n in range(1, VECTOR + 1) if length % n == 0)
    if most >= HALVED:
        schedule.vectorize(schedule.split(beside, [None, most])[1])


def _summed_over(schedule: Schedule, block: Any) -> list[Any]:
    """The loops' variables that a block sums over."""
    found: list[Any] = []
    structural_walk(schedule.mod["main"].body, [(s_tir.SBlockRealize, found.append)])
    (realized,) = [one for one in found if one.block.same_as(schedule.get(block))]
    values = zip(realized.block.iter_vars, realized.iter_values, strict=True)
    return [value for one, value in values if one.iter_type == SUMMED]
