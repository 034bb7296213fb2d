"""How much machine code a scheduled program will be: known before anything is lowered, and what compiling it costs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import tvm
from tvm.tirx import ForKind

DEEPEST = 8
"""Loops in one another that TVM's UnrollLoop unrolls of its own accord: its auto_max_depth."""
STEP = "pragma_auto_unroll_max_step"


class _Part(NamedTuple):
    """What UnrollLoop counts on its way up: statements, loops unrolled and loops kept in one another; and the stores of a
    vector each that come out."""

    code: float = 0.0
    steps: int = 0
    unrolled: int = 0
    kept: int = 0


def code_size(program: tvm.tirx.PrimFunc, lanes: int) -> float:
    """Stores of a vector of `lanes` numbers each, once loops are unrolled as TVM's UnrollLoop does it."""
    return _size(program.body, 0, lanes).code


def _size(stmt: Any, most: int, lanes: int) -> _Part:
    """`most` are the statements up to which loops unroll here."""
    kind = type(stmt).__name__
    if kind == "For":
        return _loop(stmt, most, lanes)
    if kind == "BufferStore":
        return _Part(1.0, 1)
    if kind == "SeqStmt":
        return _together([_size(part, most, lanes) for part in stmt.seq])
    if kind == "SBlockRealize":
        parts = [_size(stmt.block.body, most, lanes)]
        if stmt.block.init is not None:
            parts.append(_size(stmt.block.init, most, lanes))
        return _together(parts)
    if kind == "IfThenElse":
        parts = [stmt.then_case] if stmt.else_case is None else [stmt.then_case, stmt.else_case]
        return _together([_size(part, most, lanes) for part in parts])
    if kind == "AttrStmt":
        return _size(stmt.body, int(stmt.value) if stmt.attr_key == STEP else most, lanes)
    return _Part()


def _together(parts: list[_Part]) -> _Part:
    return _Part(
        sum(part.code for part in parts),
        sum(part.steps for part in parts),
        max((part.unrolled for part in parts), default=0),
        max((part.kept for part in parts), default=0),
    )


def _loop(loop: Any, most: int, lanes: int) -> _Part:
    annotations = loop.annotations
    if STEP in annotations:
        most = int(annotations[STEP])
    body = _size(loop.body, most, lanes)
    extent = int(loop.extent.value) if hasattr(loop.extent, "value") else None
    kind = int(loop.kind)
    if extent is None:
        return body._replace(kept=body.kept + 1)
    if kind == ForKind.VECTORIZED:
        return body._replace(code=body.code * math.ceil(extent / lanes))
    small = kind == ForKind.SERIAL and not body.kept and body.unrolled <= DEEPEST and extent * body.steps <= most
    if kind == ForKind.UNROLLED or small:
        return _Part(body.code * extent, body.steps * extent, body.unrolled + 1, body.kept)
    return body._replace(kept=body.kept + 1)
