"""Scheduled programs that compute something else than their operator, told from the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tvm import ir, s_tir, tirx
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import blocks


class _Placed(NamedTuple):
    """A block, what its iterators stand for, and the loops around it from the outermost."""

    block: Any
    values: Any
    loops: tuple[Any, ...]


def has_sums_of_sums(program: tirx.PrimFunc) -> bool:
    """Whether there is more than one reduction, one of which may be worked out within another's loops."""
    return sum(block.init is not None for block in blocks(program)) > 1


def repeats_a_sum(program: tirx.PrimFunc) -> bool:
    """Whether a reduction goes through a loop that is not its own without beginning anew.

    TVM's RewriteReductionBlock takes a sum's zero out of all loops that the sum does not run along, also of one in which the
    whole sum is computed again and again: of an InstanceNormalization's mean, computed within a loop of its variance,
    16 times the mean was left.
    """
    placed = list(_placed(program.body, ()))
    begun = [(write.source, p.loops) for p in placed if not _accumulates(p.block) for write in p.block.writes]
    return any(_repeats(p, begun) for p in placed if _accumulates(p.block))


def _repeats(update: _Placed, begun: list[tuple[Any, tuple[Any, ...]]]) -> bool:
    own: list[Any] = []
    structural_walk(update.values, [(ir.Var, own.append)])
    buffer = update.block.writes[0].source
    for depth, loop in enumerate(update.loops, start=1):
        foreign = int(getattr(loop.extent, "value", 2)) > 1 and loop.loop_var not in own
        if foreign and not any(one == buffer and loops[:depth] == update.loops[:depth] for one, loops in begun):
            return True
    return False


def _accumulates(block: Any) -> bool:
    """An update whose beginning stands elsewhere: what it writes, it reads."""
    return block.init is None and any(read.source == write.source for write in block.writes for read in block.reads)


def _placed(stmt: Any, loops: tuple[Any, ...]) -> Iterator[_Placed]:
    if isinstance(stmt, tirx.For):
        yield from _placed(stmt.body, (*loops, stmt))
    elif isinstance(stmt, tirx.SeqStmt):
        for part in stmt.seq:
            yield from _placed(part, loops)
    elif isinstance(stmt, s_tir.SBlockRealize):
        if stmt.block.name_hint != "root":
            yield _Placed(stmt.block, stmt.iter_values, loops)
        yield from _placed(stmt.block.body, loops)
    elif isinstance(stmt, (tirx.AttrStmt, tirx.IfThenElse)):
        yield from _placed(stmt.body if isinstance(stmt, tirx.AttrStmt) else stmt.then_case, loops)
