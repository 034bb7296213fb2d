"""Transpositions in tiles: what is written in a row lies far apart where it is read, and what lies in a row there is not
written so."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx
from tvm.sym import Analyzer

from workers.tvm_backend.concatenation import in_one_block
from workers.tvm_backend.hardware import vector_lanes
from workers.tvm_backend.layout_free import blocks

TRANSPOSED = "transpose"
"""In the names of blocks that permute axes."""


def tiled(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.IRModule:
    """With what only moves values, and reads along another axis than it writes, in tiles of a vector either way: each line of
    the cache is read once, and not as often as it holds values."""
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and any(TRANSPOSED in block.name_hint for block in blocks(function)):
            mod[variable] = _tiled(function, vector_lanes(target)) or function
    return mod


def _tiled(function: tirx.PrimFunc, lanes: int) -> tirx.PrimFunc | None:
    """None where that cannot be, or brings nothing."""
    found = in_one_block(function)
    if found is None:
        return None
    schedule, whole = found
    block = schedule.get(whole)
    along, last = _read_along(block), len(block.iter_vars) - 1
    if along is None or any(int(block.iter_vars[axis].dom.extent) % lanes for axis in (along, last)):
        return None
    loops = schedule.get_loops(whole)
    rows, row = schedule.split(loops[along], [None, lanes])
    columns, column = schedule.split(loops[last], [None, lanes])
    schedule.reorder(*loops[:along], *loops[along + 1 : last], rows, columns, row, column)
    return schedule.mod["main"]


def _read_along(block: Any) -> int | None:
    """The axis along which the largest tensor that a block reads lies in a row; None where that is the last, as it is
    written."""
    largest = max(block.reads, key=lambda read: math.prod(map(int, read.source.shape)), default=None)
    if largest is None:
        return None
    axes = [axis.var for axis in block.iter_vars]
    steps = [_address(largest, axes, axis) - _address(largest, axes, None) for axis in range(len(axes))]
    return steps.index(1) if 1 in steps[:-1] and abs(steps[-1]) > 1 else None


def _address(read: Any, axes: list[Any], one: int | None) -> int:
    """Of the value that is read where axis `one` is 1 and all others are 0."""
    analyzer, address = Analyzer(), 0
    for at, axis in enumerate(axes):
        analyzer.bind(axis, tirx.IntImm("int64", int(at == one)))
    for index, size in zip(read.region, read.source.shape, strict=True):
        address = address * int(size) + int(analyzer.simplify(index.min))
    return address
