"""Programs that compute again and again what is needed once.

TVM computes a mean where it is read, if a configuration says so: of 200,704 numbers for each of them anew, which takes seconds
in place of microseconds, and the clock three tries of ten seconds each to find out.
"""

from __future__ import annotations

from typing import Any

import tvm

MOST = 64
"""Times the steps of a program as it is written. What a window reads, computed for each window, is up to 49 times as much."""


def steps(function: tvm.tirx.PrimFunc) -> int:
    """How many numbers it stores, those of sums with each that is added."""
    return _steps(function.body)


def _steps(stmt: Any) -> int:
    kind = type(stmt).__name__
    if kind == "BufferStore":
        return 1
    if kind == "SeqStmt":
        return sum(map(_steps, stmt.seq))
    if kind == "IfThenElse":
        return _steps(stmt.then_case) + (_steps(stmt.else_case) if stmt.else_case is not None else 0)
    if kind == "SBlockRealize":
        return _steps(stmt.block.body)
    times = int(stmt.extent) if kind == "For" and hasattr(stmt.extent, "value") else 1
    return times * _steps(stmt.body) if hasattr(stmt, "body") else 0
