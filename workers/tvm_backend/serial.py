"""Little work by one core.

To start the others takes 0.7 microseconds: a gate of a recurrent operator takes 0.8 on two cores and 0.15 on one. Where both
take as long one does 32,000 instructions as they are counted here, with vectors of 16 numbers.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import ir, tirx
from tvm.tirx import ForKind
from tvm_ffi import structural_map, structural_walk

from workers.tvm_backend.hardware import is_gpu, vector_lanes

LITTLE = 16_000
"""Instructions of a loop that is one core's."""
STORED = 16
"""Of a number, or a vector of them, that is read and stored; and one for each operation."""
CALLED = 16
"""Of a function that is called for a number."""
OPERATIONS = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max, tirx.Select)


@tvm.transform.module_pass(opt_level=0, name="LittleByOneCore")
class LittleByOne:
    """A loop that runs in parallel and does no more is one core's; for functions that know their target."""

    def transform_module(self, mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
        for variable, function in mod.functions_items():
            target = function.attrs.get("target") if isinstance(function, tirx.PrimFunc) else None
            if target is not None and not is_gpu(target):
                mod[variable] = by_one(function, vector_lanes(target))
        return mod


def by_one(function: tirx.PrimFunc, lanes: int) -> tirx.PrimFunc:
    """For vectors of so many `lanes`."""

    def alone(loop: tirx.For) -> Any:
        if loop.kind != ForKind.PARALLEL or instructions(loop, lanes) > LITTLE:
            return loop
        return tirx.For(loop.loop_var, loop.min, loop.extent, ForKind.SERIAL, loop.body)

    return function.with_body(structural_map(function.body, (tirx.For, alone)))


def instructions(stmt: Any, lanes: int) -> float:
    """About how many a part of a program is; infinitely many where a loop's length is not known."""
    kind = type(stmt).__name__
    if kind == "BufferStore":
        return STORED + _operations(stmt.value)
    if kind == "SeqStmt":
        return sum(instructions(part, lanes) for part in stmt.seq)
    if kind == "IfThenElse":
        return sum(instructions(part, lanes) for part in (stmt.then_case, stmt.else_case) if part is not None)
    if kind == "SBlockRealize":
        first = instructions(stmt.block.init, lanes) if stmt.block.init is not None else 0
        return first + instructions(stmt.block.body, lanes)
    times = 1.0
    if kind == "For":
        times = float(int(stmt.extent)) if isinstance(stmt.extent, tirx.IntImm) else float("inf")
        times = -(-times // lanes) if stmt.kind == ForKind.VECTORIZED else times
    return times * instructions(stmt.body, lanes) if hasattr(stmt, "body") else CALLED


def _operations(value: Any) -> int:
    found: list[Any] = []
    calls: list[Any] = []
    structural_walk(value, [*((kind, found.append) for kind in OPERATIONS), (ir.Call, calls.append)])
    return len(found) + CALLED * len(calls)
