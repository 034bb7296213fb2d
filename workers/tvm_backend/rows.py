"""Products with so many rows that a tile of their sums fills the vector registers.

A processor adds products as fast as it can where some ten sums lie in its registers, and few of their factors have to be
loaded: with 16 registers 6 rows of 2 vectors, or 4 of 3. TVM's tiles divide what they are of, and 14 x 14 places of 512
channels have no 3 and no 5: what is left is 4 x 2, or 7 x 1. Here rows are added that repeat the last one, and are never
written. With 32 registers there are tiles of 7 x 4 and 14 x 2, and little but prime numbers lacks one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import Schedule

from workers.tvm_backend.hardware import vector_lanes, vector_registers
from workers.tvm_backend.layout_free import blocks
from workers.tvm_backend.mutation import FUSABLE, static_shape

SUMS = 10
"""In registers at least: two begin in a cycle and take four, and with eight any delay is one of them all."""
FEWEST = {16: 2, 32: 1}
"""Vectors of a tile, by registers: of one each product has a load of its own, which with AVX-512 and NEON is part of its
instruction. Of one row it would be a load of weights, which come from farther away."""
MOST = 1.05
"""Times the rows that there are. 18 rows in place of 16 took a ninth longer than they saved."""
NEARLY = 1.02
"""Times the fewest rows that will do: more may have more divisors, which all other levels of tiles are made of."""
PLACES = "places"
"""Names the block that reads rows as places of a picture, or of what else has several axes."""

Shape = Sequence[int]
Read = Callable[..., Any]


def enough(extents: Shape, columns: int, lanes: int, registers: int) -> int | None:
    """Rows of a product of `columns` that a tile can fill registers of so many `lanes` with, a few more than there are places
    in a picture of these `extents`. None where tiles of the picture do so as it is, or no number nearby would."""
    wide = [count for count in _divisors(columns // lanes) if count >= FEWEST[registers]]

    def fills(tiles: Shape) -> bool:
        return any(
            rows * count >= SUMS and rows * count + min(rows, count) < registers
            for rows in tiles
            for count in wide
            if rows > 1
        )

    there = math.prod(extents)
    if columns % lanes or fills([math.prod(tile) for tile in itertools.product(*map(_divisors, extents))]):
        return None
    fitting = [count for count in range(there, int(MOST * there) + 1) if fills(_divisors(count))]
    near = [count for count in fitting if count <= NEARLY * fitting[0]]
    return max(near, key=lambda count: len(_divisors(count)), default=None)


def _divisors(number: int) -> list[int]:
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})


def _conv2d(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Of 1 x 1 weights, in NHWC."""
    shape, (data, weights), attributes = static_shape(call), map(static_shape, call.args), call.attrs
    plain = (
        str(attributes.data_layout) == str(attributes.out_layout) == "NHWC"
        and str(attributes.kernel_layout) == "HWIO"
        and [int(n) for n in (*attributes.padding, attributes.groups)] == [0, 0, 0, 0, 1]
    )
    if shape and data and weights and plain and weights[:2] == (1, 1):
        down, across = (int(step) for step in attributes.strides)
        reads = (
            lambda data, along, n, y, x: data[n, y * down, x * across, along],
            lambda weights, along, out: weights[0, 0, along, out],
        )
        return _computed(builder, call, shape[:-1], partial(_over_places, shape, *reads))
    return _computed(builder, call, (), None)


def _matmul(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Of one matrix on the right, whose rows are all that is on the left, or of as many as on the left."""
    shape, (left, right) = static_shape(call), map(static_shape, call.args)
    if shape and left and right and len(left) == len(shape) > 1:
        if len(right) == 2:
            reads = (
                lambda left, along, *place: left[(*place, along)],
                lambda right, along, column: right[along, column],
            )
            return _computed(builder, call, shape[:-1], partial(_over_places, shape, *reads))
        if right[:-2] == left[:-2]:
            return _computed(builder, call, shape[-2:-1], partial(_of_matrices, shape))
    return _computed(builder, call, (), None)


LEGALIZED = {"relax.nn.conv2d": _conv2d, "relax.matmul": _matmul}
"""For `relax.transform.LegalizeOps`, by operator, within a target."""


def _computed(
    builder: relax.BlockBuilder, call: relax.Call, extents: Shape, product: Callable[..., te.Tensor] | None
) -> relax.Expr:
    """By `product` of so many rows where its tiles need them; else as ever."""
    target, single = tvm.target.Target.current(), {str(one.ty.dtype.dtype) for one in (call, *call.args)} == {"float32"}
    rows = None
    if product is not None and single:
        rows = enough(extents, int(call.ty.shape[-1]), vector_lanes(target), vector_registers(target))
    if product is None or rows is None:
        return call.op.get_attr("FLegalize")(builder, call)
    name = call.op.name.rpartition(".")[-1]
    return builder.call_te(
        partial(product, rows), *call.args, primfunc_name_hint=name, primfunc_attrs={"op_pattern": FUSABLE}
    )


def _over_places(shape: Shape, left: Read, right: Read, rows: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """Sums of `shape`, whose places, all but the last axis, are rows: of what `left` reads of the data for a place, and `right`
    of the weights for a column."""
    *extents, width = shape
    along = te.reduce_axis((0, data.shape[-1]), name="along")

    def summed(row: Any, column: Any) -> Any:
        place = _place(te.min(row, math.prod(extents) - 1), extents)
        return te.sum(left(data, along, *place) * right(weights, along, column), axis=along)

    whole = te.compute((rows, width), summed, name="rows")
    return te.compute(shape, lambda *place: whole[_row(place[:-1], extents), place[-1]], name=PLACES)


def _place(row: Any, extents: Shape) -> list[Any]:
    """Inverse of `_row`."""
    place: list[Any] = []
    for extent in reversed(extents):
        place.insert(0, row % extent if extent > 1 else 0)
        row = row // extent
    return place


def _row(place: Sequence[Any], extents: Shape) -> Any:
    row: Any = 0
    for at, extent in zip(place, extents, strict=True):
        row = row * extent + at
    return row


def _of_matrices(shape: Shape, rows: int, left: te.Tensor, right: te.Tensor) -> te.Tensor:
    *others, height, width = shape
    along = te.reduce_axis((0, left.shape[-1]), name="along")

    def summed(*place: Any) -> Any:
        *which, row, column = place
        return te.sum(left[(*which, te.min(row, height - 1), along)] * right[(*which, along, column)], axis=along)

    whole = te.compute((*others, rows, width), summed, name="rows")
    return te.compute(shape, lambda *place: whole[place], name="product")


def flattened(mod: tvm.IRModule) -> tvm.IRModule:
    """With what follows products over places as one block over their rows: tiles of rows are none of places."""
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and any(block.name_hint == PLACES for block in blocks(function)):
            mod[variable] = _flat(function)
    return mod


def _flat(function: tirx.PrimFunc) -> tirx.PrimFunc:
    *inner, last = blocks(function)
    schedule = Schedule(tvm.IRModule({"main": function}))
    for block in inner:
        if block.init is None:
            schedule.compute_inline(schedule.get_sblock(block.name_hint))
    *extents, _ = (int(axis.dom.extent) for axis in last.iter_vars)
    by_rows = tirx.IndexMap.from_func(lambda *place: (_row(place[:-1], extents), place[-1]), ndim=len(last.iter_vars))
    schedule.transform_block_layout(schedule.get_sblock(last.name_hint), by_rows)
    return schedule.mod["main"]
