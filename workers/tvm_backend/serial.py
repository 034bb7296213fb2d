"""Little work by one core.

To start the others takes 0.7 to 1.7 microseconds: a gate of a recurrent operator takes 0.8 on two cores and 0.15 on one. Two
cores take as long as one for 32,000 to 70,000 instructions as they are counted here.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import ir, tirx
from tvm.tirx import ForKind
from tvm_ffi import structural_map, structural_walk

LITTLE = 32_000
"""Instructions of a loop that is one core's."""
STORED = 16
"""Of a number, or a vector of them, that is read and stored; and one for each operation."""
CALLED, BY_NUMBER = 16, 128
"""Of a function that vectors have, and of one of the C library, for each number of a vector."""
OPERATIONS = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max, tirx.Select)
LIBRARY = frozenset(
    f"tirx.{name}"
    for name in "exp exp2 exp10 log log2 log10 log1p pow sin cos tan sinh cosh tanh asin acos atan atan2 asinh acosh atanh erf "
    "sigmoid fmod hypot call_extern call_pure_extern call_packed".split()
)


def by_one(function: tirx.PrimFunc, lanes: int) -> tirx.PrimFunc:
    """A loop that runs in parallel and does no more is one core's, for vectors of so many `lanes`. What else is told of it, as
    how far to unroll within, stays."""

    def alone(loop: tirx.For) -> Any:
        if loop.kind != ForKind.PARALLEL or not instructions(loop, lanes) <= LITTLE:
            return loop
        told = (loop.thread_binding, loop.annotations, loop.step, loop.span)
        return tirx.For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body, *told)

    return function.with_body(structural_map(function.body, (tirx.For, alone)))


def instructions(stmt: Any, lanes: int, width: int = 1) -> float:
    """About how many a part of a program is, where `width` numbers are computed at a time; infinitely many where it is not
    known how often a loop goes round."""
    kind = type(stmt).__name__
    if kind == "BufferStore":
        return STORED + sum(_operations(one, width) for one in (stmt.value, *stmt.indices))
    if kind == "SeqStmt":
        return sum(instructions(part, lanes, width) for part in stmt.seq)
    if kind == "IfThenElse":
        parts = (part for part in (stmt.then_case, stmt.else_case) if part is not None)
        return _operations(stmt.condition, width) + sum(instructions(part, lanes, width) for part in parts)
    if kind == "SBlockRealize":
        first = instructions(stmt.block.init, lanes, width) if stmt.block.init is not None else 0
        return first + instructions(stmt.block.body, lanes, width)
    if kind == "While" or (kind == "For" and not isinstance(stmt.extent, tirx.IntImm)):
        return math.inf
    if kind == "For":
        times = int(stmt.extent)
        if stmt.kind != ForKind.VECTORIZED:
            return times * instructions(stmt.body, lanes, width)
        return -(-times // lanes) * instructions(stmt.body, lanes, min(times, lanes))
    if kind in ("Evaluate", "Bind"):
        return CALLED + _operations(stmt.value, width)
    return instructions(stmt.body, lanes, width) if hasattr(stmt, "body") else CALLED


def _operations(value: Any, width: int) -> int:
    found: list[Any] = []
    calls: list[Any] = []
    structural_walk(value, [*((kind, found.append) for kind in OPERATIONS), (ir.Call, calls.append)])
    by_number = sum(isinstance(call.op, ir.Op) and call.op.name in LIBRARY for call in calls)
    return len(found) + CALLED * (len(calls) - by_number) + BY_NUMBER * width * by_number
