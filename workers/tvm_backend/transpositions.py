"""Transpositions in tiles: what is written in a row lies far apart where it is read, and what lies in a row there is not
written so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.sym import Analyzer

from workers.tvm_backend.blocks import blocks
from workers.tvm_backend.concatenation import in_one_block
from workers.tvm_backend.hardware import vector_lanes

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
    block, loops = schedule.get(whole), schedule.get_loops(whole)
    shape = [axis.dom.extent for axis in block.iter_vars]
    if len(loops) != len(shape) or not all(isinstance(extent, tirx.IntImm) for extent in shape):
        return None
    along, last = _read_along(block), len(shape) - 1
    if along is None:
        return None
    sides = [_side(int(shape[axis]), lanes) for axis in (along, last)]
    if None in sides:
        return None
    rows, row = schedule.split(loops[along], [None, sides[0]])
    columns, column = schedule.split(loops[last], [None, sides[1]])
    schedule.reorder(*loops[:along], *loops[along + 1 : last], rows, columns, row, column)
    return schedule.mod["main"]


def _side(extent: int, lanes: int) -> int | None:
    """Of a tile: a vector, else what divides the extent and is half to two of them; None where nothing does."""
    if extent % lanes == 0:
        return lanes
    return next((side for side in range(2 * lanes, lanes // 2 - 1, -1) if extent % side == 0), None)


def _read_along(block: Any) -> int | None:
    """The axis along which one of the largest tensors that a block reads lies in a row; None where that is the last, as it is
    written."""
    reads = [read for read in block.reads if all(isinstance(size, tirx.IntImm) for size in read.source.shape)]
    counts = [math.prod(map(int, read.source.shape)) for read in reads]
    for read, count in zip(reads, counts, strict=True):
        steps = _steps(read, block.iter_vars) if count == max(counts) else None
        if steps and 1 in steps[:-1] and abs(steps[-1]) > 1:
            return steps.index(1)
    return None


def _steps(read: Any, axes: Sequence[Any]) -> list[int] | None:
    """How far apart values are read along each axis, 0 along one of extent 1; None where other values say so."""
    addresses = (_address(read, axes, one) for one in (None, *range(len(axes))))
    first, *others = [address for address in addresses if address is not None] or [0]
    if len(others) < len(axes):
        return None
    return [(at - first) * (int(axis.dom.extent) > 1) for at, axis in zip(others, axes, strict=True)]


def _address(read: Any, axes: Sequence[Any], one: int | None) -> int | None:
    """Of the value that is read where axis `one` is 1 and all others are 0; None where it is known at run time alone."""
    analyzer, address = Analyzer(), 0
    for at, axis in enumerate(axes):
        analyzer.bind(axis.var, tirx.IntImm("int64", int(at == one)))
    for index, size in zip(read.region, read.source.shape, strict=True):
        place = analyzer.simplify(index.min)
        if not isinstance(place, tirx.IntImm):
            return None
        address = address * int(size) + int(place)
    return address
