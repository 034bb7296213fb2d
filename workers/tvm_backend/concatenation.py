"""Concatenations that are copied by vectors: those of TVM ask of each value which part it is of."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import Schedule
from tvm_ffi import structural_walk

from workers.tvm_backend.layout_free import blocks
from workers.tvm_backend.mutation import static_shape

WIDEST, NARROWEST = 64, 4
"""Values at a time."""


def _concat(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    parts = list(call.args[0]) if isinstance(call.args[0], relax.Tuple) else []
    shapes = [static_shape(part) for part in parts]
    if not parts or call.attrs.axis is None or not all(shapes):
        return call.op.get_attr("FLegalize")(builder, call)
    axis = int(call.attrs.axis) % len(shapes[0] or ())
    return builder.call_te(joined, parts, axis, primfunc_name_hint="concatenate")


LEGALIZED = {"relax.concat": _concat}
"""For `relax.transform.LegalizeOps`, by operator."""


def joined(parts: list[te.Tensor], axis: int) -> te.Tensor:
    """`parts` side by side along `axis`. That `place < end` is the same for all of a vector is seen by TVM, of `end <= place`,
    which it would write, it is not."""
    sizes = [int(part.shape[axis]) for part in parts]
    ends = list(accumulate(sizes))

    def value(*place: Any) -> Any:
        def among(first: int, last: int) -> Any:
            if last - first == 1:
                start = ends[first] - sizes[first]
                return parts[first][(*place[:axis], place[axis] - start, *place[axis + 1 :])]
            middle = (first + last) // 2
            return tirx.if_then_else(place[axis] < ends[middle - 1], among(first, middle), among(middle, last))

        return among(0, len(parts))

    shape = [*parts[0].shape]
    shape[axis] = ends[-1]
    return te.compute(shape, value, name="joined")


def in_vectors(mod: tvm.IRModule) -> tvm.IRModule:
    """With programs that ask where along the last axis they are as one block, whose last loop is broken where that may change.

    TVM's rules make no vectors that an answer may differ in, and leave what asks in a block of its own.
    """
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and any(_ends(block) for block in blocks(function)):
            mod[variable] = _broken(function) or function
    return mod


def _broken(function: tirx.PrimFunc) -> tirx.PrimFunc | None:
    found = blocks(function)
    if any(block.init is not None for block in found):
        return None
    schedule = Schedule(tvm.IRModule({"main": function}))
    try:
        for block in found[:-1]:
            schedule.compute_inline(schedule.get_sblock(block.name_hint))
    except tvm.s_tir.ScheduleError:
        return None
    last = schedule.get_sblock(found[-1].name_hint)
    block = schedule.get(last)
    width = math.gcd(WIDEST, int(block.iter_vars[-1].dom.extent), *_ends(block))
    if width < NARROWEST:
        return None
    schedule.split(schedule.get_loops(last)[-1], [None, width])
    return schedule.mod["main"]


def _ends(block: Any) -> list[int]:
    """Places along the block's last axis before which it does something else than behind them."""
    asked: list[Any] = []
    structural_walk(block.body, [(tirx.LT, asked.append)])
    place = block.iter_vars[-1].var if block.iter_vars else None
    return [
        int(one.b) for one in asked if place is not None and one.a.same_as(place) and isinstance(one.b, tirx.IntImm)
    ]
