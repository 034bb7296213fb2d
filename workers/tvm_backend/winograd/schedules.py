"""How the transforms run, as schedule rules that TVM's design spaces find by the names in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm.s_tir import Schedule

INPUT, OUTPUT = "winograd_input", "winograd_output"
SIZES = "winograd"
"""Annotation: width of a tile, and channels at a time."""


@tvm.register_global_func(f"s_tir.meta_schedule.cpu.{INPUT}", override=True)  # type: ignore[untyped-decorator]
def _schedule_input(schedule: Schedule, block: Any) -> list[Schedule]:
    """A vector of channels of one tile at a time: its inputs, its rows and its places stay in registers and cache."""
    width, lanes = _numbers(schedule, block)
    place, tile, channel = schedule.get_loops(block)
    row, column = schedule.split(place, [width, width])
    outer, vector = schedule.split(channel, [None, lanes])
    schedule.reorder(tile, outer, row, column, vector)
    (rows,) = schedule.get_producers(block)
    (tiles,) = schedule.get_producers(rows)
    for producer in (rows, tiles):
        schedule.compute_at(producer, outer)
        _unrolled(schedule, schedule.get_loops(producer)[2:])
    _unrolled(schedule, [row, column, vector])
    schedule.parallel(tile)
    return [schedule]


@tvm.register_global_func(f"s_tir.meta_schedule.cpu.{OUTPUT}", override=True)  # type: ignore[untyped-decorator]
def _schedule_output(schedule: Schedule, block: Any) -> list[Schedule]:
    """A vector of filters of one tile at a time, with what follows the convolution."""
    step, lanes = _numbers(schedule, block)
    while consumers := schedule.get_consumers(block):
        if len(consumers) == 1:
            _read_by(schedule, consumers[0], block)
            schedule.reverse_compute_inline(consumers[0])
        else:  # x * sigmoid(x): what is read again first becomes part of what reads it
            schedule.compute_inline(next(one for one in consumers if schedule.get_consumers(one)))
    image, y, x, channel = schedule.get_loops(block)
    (y, below), (x, beside), (outer, vector) = (
        schedule.split(loop, [None, size]) for loop, size in ((y, step), (x, step), (channel, lanes))
    )
    schedule.reorder(image, y, x, outer, below, beside, vector)
    (rows,) = [
        producer for producer in schedule.get_producers(block) if schedule.get(producer).name_hint.startswith("rows")
    ]
    schedule.compute_at(rows, outer)
    _unrolled(schedule, schedule.get_loops(rows)[4:])
    _unrolled(schedule, [below, beside, vector])
    schedule.parallel(schedule.fuse(image, y, x))
    return [schedule]


def _read_by(schedule: Schedule, consumer: Any, block: Any) -> None:
    """Makes what else a consumer reads, such as the other term of a sum, part of it."""
    name = schedule.get(block).name_hint
    while others := [one for one in schedule.get_producers(consumer) if schedule.get(one).name_hint != name]:
        schedule.compute_inline(others[0])


def _numbers(schedule: Schedule, block: Any) -> tuple[int, int]:
    first, second = (int(n) for n in schedule.get(block).annotations[SIZES])
    schedule.unannotate(block, SIZES)
    return first, second


def _unrolled(schedule: Schedule, loops: Sequence[Any]) -> None:
    """The last loop as a vector, the others unrolled: their indices choose rows of the matrices."""
    for loop in loops[:-1]:
        schedule.unroll(loop)
    schedule.vectorize(loops[-1])
