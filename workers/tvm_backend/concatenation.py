"""Concatenations that are copied by vectors: those of TVM ask of each value which part it is of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.s_tir import Schedule
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import blocks
from workers.tvm_backend.mutation import is_concatenation, static_shape

WIDEST, NARROWEST = 64, 4
"""Values at a time."""


def _concat(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    parts = list(call.args[0]) if is_concatenation(call) else []
    shapes = [static_shape(part) for part in parts]
    if not parts or not all(shapes):
        return call.op.get_attr("FLegalize")(builder, call)
    axis = int(call.attrs.axis) % len(shapes[0] or ())
    return builder.call_te(joined, parts, axis, primfunc_name_hint="concatenate")


LEGALIZED = {"relax.concat": _concat}
"""For `relax.transform.LegalizeOps`, by operator."""


def joined(parts: list[te.Tensor], axis: int) -> te.Tensor:
    """`parts` side by side along `axis`. TVM sees that `place < end` is the same for all of a vector; of `end <= place`, which
    its own concatenation asks, it does not."""
    sizes = [int(part.shape[axis]) for part in parts]
    ends = list(accumulate(sizes))

    def value(*place: Any) -> Any:
        def of(number: int) -> Any:
            within = place[axis] - (ends[number] - sizes[number])
            return parts[number][(*place[:axis], within, *place[axis + 1 :])]

        return _one_of(0, len(parts), lambda number: place[axis] < ends[number - 1], of)

    shape = [*parts[0].shape]
    shape[axis] = ends[-1]
    return te.compute(shape, value, name="joined")


def interleaved(parts: list[te.Tensor], start: int, end: int) -> te.Tensor:
    """The first channel of each of `parts`, which are alike, then the second of each: those from `start` to `end`. Channels
    are the last axis."""

    def value(*place: Any) -> Any:
        at, count = place[-1] + start, len(parts)
        return _one_of(
            0, count, lambda number: at % count < number, lambda number: parts[number][(*place[:-1], at // count)]
        )

    return te.compute([*parts[0].shape[:-1], end - start], value, name="interleaved")


def _one_of(first: int, last: int, before: Callable[[int], Any], value: Callable[[int], Any]) -> Any:
    """The value of one of the parts `first` to `last`, which is told by whether it is before others."""
    if last - first == 1:
        return value(first)
    middle = (first + last) // 2
    return tirx.if_then_else(
        before(middle), _one_of(first, middle, before, value), _one_of(middle, last, before, value)
    )


def in_vectors(mod: tvm.IRModule) -> tvm.IRModule:
    """With programs that ask which of several tensors a value is of as one block, whose last loop is broken where the answer
    may change, or after one of each: TVM's rules make vectors of values that are answered differently, one by one then."""
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and any(any(_asked(block)) for block in blocks(function)):
            mod[variable] = _by_vectors(function) or function
    return mod


def in_one_block(function: tirx.PrimFunc) -> tuple[Schedule, Any] | None:
    """A schedule in which a function is one block, and that block; None where that cannot be, as of a sum."""
    *inner, last = blocks(function)
    if any(block.init is not None for block in (*inner, last)):
        return None
    schedule = Schedule(tvm.IRModule({"main": function}))
    try:
        for block in inner:
            schedule.compute_inline(schedule.get_sblock(block.name_hint))
        return schedule, schedule.get_sblock(last.name_hint)
    except tvm.s_tir.ScheduleError:
        return None


def _by_vectors(function: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """None where that cannot be, or brings nothing."""
    found = in_one_block(function)
    if found is None:
        return None
    schedule, whole = found
    block = schedule.get(whole)
    ends, turns = _asked(block)
    width = math.gcd(WIDEST, int(block.iter_vars[-1].dom.extent), *ends, *turns)
    if not (ends or turns) or (width < NARROWEST and width not in turns):
        return None
    schedule.split(schedule.get_loops(whole)[-1], [None, width])
    return schedule.mod["main"]


def _asked(block: Any) -> tuple[list[int], list[int]]:
    """Places along a block's last axis before which it does something else than behind them; and of how many tensors it takes
    one in turn."""
    conditions: list[Any] = []
    structural_walk(block.body, [(tirx.LT, conditions.append)])
    ends: list[int] = []
    repeated: dict[int, set[int]] = defaultdict(set)
    for one in conditions:
        again = one.a.b if isinstance(one.a, tirx.FloorMod) else None
        place, more = one.a if again is None else one.a.a, 0
        if isinstance(place, tirx.Add) and isinstance(place.b, tirx.IntImm):
            place, more = place.a, int(place.b)
        known = isinstance(one.b, tirx.IntImm) and (again is None or isinstance(again, tirx.IntImm))
        if not known or not block.iter_vars or not place.same_as(block.iter_vars[-1].var):
            continue
        if again is None:
            ends.append(int(one.b) - more)
        else:
            repeated[int(again)].add(int(one.b))
    turns = [count for count, asked in repeated.items() if asked == set(range(1, count))]
    for count in repeated.keys() - set(turns):
        ends += [count, *repeated[count]]
    return ends, turns
