"""Products with so many rows that a tile of their sums fills the vector registers.

A processor adds products as fast as it can where some ten sums lie in its registers, and few of their factors have to be
loaded: with 16 registers 6 rows of 2 vectors are best. TVM's tiles divide what they are of, and 14 x 14 places have no 3 and
no 5: what is left is 4 x 2, or 7 x 1. Here rows are added that repeat the last one, and are never written. With 32 registers
there is a tile of 14 x 2; squares of primes as 19 x 19 lack one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import Schedule

from workers.tvm_backend import views
from workers.tvm_backend.blocks import blocks, has_results_beside
from workers.tvm_backend.hardware import vector_lanes, vector_registers
from workers.tvm_backend.integers.sums import LAYOUTS, Convolution
from workers.tvm_backend.mutation import FUSABLE, static_shape

FEWEST_SUMS = 10
"""In registers: two begin in a cycle and take four, and with eight any delay is one of them all."""
VECTORS = (1, 2, 3, 4)
"""Of a tile's rows."""
FEWEST_VECTORS = {16: (2,), 32: (2, 1)}
"""By registers, what is better first. With one each product has a load of its own; AVX-512 has that in its instruction, and
NEON multiplies by one number of a vector, but 19 x 1 sums at a time take a tenth longer than 14 x 2."""
MOST = 1.05
"""Times the rows that there are. 18 rows in place of 16 took a ninth longer than they saved."""
NEARLY = 1.02
"""Times the fewest rows that will do: more may have more divisors, which all other levels of tiles are made of."""
LOOKED_AT = 256
"""Numbers of rows: of millions of places all that are near are too many to divide."""
SUMMED, PLACES = "summed", "places"
"""Name blocks: the product, and what reads its rows as places of a picture, or of what else has several axes."""

Shape = Sequence[int]
Read = Callable[..., Any]
Product = tuple[int, Callable[..., te.Tensor]]
"""Its places, and what computes it of so many rows."""


@lru_cache(maxsize=4096)
def enough(places: int, columns: int, lanes: int, registers: int) -> int | None:
    """Rows, a few more than there are places, of a product of `columns` that a tile can fill registers of so many `lanes`
    with. None where tiles do so as it is, or no number nearby would."""
    each = (_fitting(places, columns // lanes, least, registers) for least in FEWEST_VECTORS[registers])
    fitting = next(filter(None, each), []) if columns % lanes == 0 else []
    if not fitting or fitting[0] == places:
        return None
    return max((rows for rows in fitting if rows <= NEARLY * fitting[0]), key=_divisors)


def _fitting(places: int, vectors: int, least: int, registers: int) -> list[int]:
    """So many rows or a few more, of so many vectors each, that tiles divide of at least so many vectors of several rows."""
    tiles = {
        rows
        for rows in range(2, registers)
        for count in VECTORS
        if count >= least and vectors % count == 0
        if rows * count >= FEWEST_SUMS and rows * count + min(rows, count) < registers
    }
    near = (rows for rows in range(places, int(MOST * places) + 1) if any(rows % tile == 0 for tile in tiles))
    return list(islice(near, LOOKED_AT))


def _divisors(number: int) -> int:
    """How many it has."""
    root = math.isqrt(number)
    return 2 * sum(number % divisor == 0 for divisor in range(1, root + 1)) - (root * root == number)


def _convolution(call: relax.Call) -> Product | None:
    """Of weights that read one place, with the channels last."""
    shape, (data, weights), found = static_shape(call), map(static_shape, call.args), Convolution.of(call)
    if found is None or not (shape and data and weights) or str(call.attrs.out_layout) != str(call.attrs.data_layout):
        return None
    strides = found.strides
    if math.prod(weights[:-2]) > 1 or any((*found.before, *found.behind)) or found.groups > 1:
        return None
    reads = (
        lambda data, along, n, *at: data[
            (n, *(place * stride for place, stride in zip(at, strides, strict=True)), along)
        ],
        lambda weights, along, out: weights[(*[0] * len(strides), along, out)],
    )
    return math.prod(shape[:-1]), partial(_rowed, 0, shape, *reads)


def _matmul(call: relax.Call) -> Product | None:
    """Of one matrix on the right, whose rows are all that is on the left, or of as many as on the left."""
    shape, (left, right) = static_shape(call), map(static_shape, call.args)
    if not (shape and left and right) or len(shape) == 1 or len(left) != len(shape):
        return None
    if len(right) > 2 and right[:-2] != left[:-2]:
        return None
    beside = len(right) - 2
    reads = (
        lambda left, along, *place: left[(*place, along)],
        lambda right, along, *column: right[(*column[:-1], along, column[-1])],
    )
    return math.prod(shape[beside:-1]), partial(_rowed, beside, shape, *reads)


def _legalized(product: Callable[[relax.Call], Product | None]) -> Callable[[relax.BlockBuilder, relax.Call], Any]:
    """With rows added where a product's tiles need them; else as ever."""

    def legalized(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        target, rows = tvm.target.Target.current(), None
        single = {str(one.ty.dtype.dtype) for one in (call, *call.args)} == {"float32"}
        found = product(call) if single else None
        if found is not None:
            rows = enough(found[0], int(call.ty.shape[-1]), vector_lanes(target), vector_registers(target))
        if found is None or rows is None:
            return call.op.get_attr("FLegalize")(builder, call)
        name, kept = call.op.name.rpartition(".")[-1], {"op_pattern": FUSABLE}
        return builder.call_te(partial(found[1], rows), *call.args, primfunc_name_hint=name, primfunc_attrs=kept)

    return legalized


LEGALIZED = {**dict.fromkeys(LAYOUTS, _legalized(_convolution)), "relax.matmul": _legalized(_matmul)}
"""For `relax.transform.LegalizeOps`, by operator, within a target."""


def _rowed(
    beside: int, shape: Shape, left: Read, right: Read, rows: int, data: te.Tensor, weights: te.Tensor
) -> te.Tensor:
    """Sums of `shape`, whose first axes stay `beside` the rows, which are the places of all others but the last: of what `left`
    reads of the data for a place, and `right` of the weights for a column."""
    others, extents, width = shape[:beside], shape[beside:-1], shape[-1]
    along = te.reduce_axis((0, data.shape[-1]), name="along")

    def summed(*at: Any) -> Any:
        *which, row, column = at
        place = _place(te.min(row, math.prod(extents) - 1), extents)
        return te.sum(left(data, along, *which, *place) * right(weights, along, *which, column), axis=along)

    def read(*place: Any) -> Any:
        return whole[(*place[:beside], _row(place[beside:-1], extents), place[-1])]

    whole = te.compute((*others, rows, width), summed, name=SUMMED)
    return te.compute(shape, read, name="product" if beside else PLACES)


def _place(row: Any, extents: Shape) -> list[Any]:
    """Inverse of `_row`."""
    place: list[Any] = []
    for extent in reversed(extents[1:]):
        place.insert(0, row % extent if extent > 1 else 0)
        row = row // extent
    return [row if extents[0] > 1 else 0, *place]


def _row(place: Sequence[Any], extents: Shape) -> Any:
    row: Any = 0
    for at, extent in zip(place, extents, strict=True):
        row = row * extent + at
    return row


def flattened(mod: tvm.IRModule) -> tvm.IRModule:
    """With what follows products over places as one block over their rows: tiles of rows are none of places."""
    for variable, function in mod.functions_items():
        if not isinstance(function, tirx.PrimFunc) or has_results_beside(function):
            continue
        if any(block.name_hint == PLACES for block in blocks(function)):
            mod[variable] = _flat(function)
    return mod


def _flat(function: tirx.PrimFunc) -> tirx.PrimFunc:
    *others, last = blocks(function)
    shape = [int(axis.dom.extent) for axis in last.iter_vars]
    by_rows = tirx.IndexMap.from_func(lambda *place: (_row(place[:-1], shape[:-1]), place[-1]), ndim=len(shape))
    schedule = Schedule(tvm.IRModule({"main": function}))
    for block in others:
        if block.init is None and [int(axis.dom.extent) for axis in block.iter_vars][:-1] == shape[:-1]:
            schedule.transform_block_layout(schedule.get_sblock(block.name_hint), by_rows)
            schedule.transform_layout(block.name_hint, ("write", 0), by_rows)
    schedule.transform_block_layout(schedule.get_sblock(last.name_hint), by_rows)
    after = [schedule.get_sblock(block.name_hint) for block in others if block.init is None]
    # TVM's rules inline what reads by its axes alone.
    if any(views.read_otherwise(schedule.get(block)) for block in after):
        for block in after:
            schedule.compute_inline(block)
    views.by_axes(schedule, last.name_hint)
    return schedule.mod["main"]
