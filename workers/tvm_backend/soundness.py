"""Scheduled programs that compute something else than their operator, told from the program or by running both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, s_tir, tirx
from tvm_ffi import structural_walk

from workers.tvm_backend.layout_free import blocks

if TYPE_CHECKING:
    from workers.tvm_backend.programs import Workload

Array = NDArray[Any]

CLOSE = 1e-4
"""Of the largest value: sums in another order differ by a hundredth of it."""
STRAY = 1e-4
"""Share of the numbers that may be others: what is rounded, or compared, falls either way where sums differ at all."""


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


class Plain:
    """What an operator computes without a schedule, on one draw of tensors: so must every program of its."""

    def __init__(self, workload: Workload) -> None:
        from workers.tvm_backend.arguments import indices_below
        from workers.tvm_backend.programs import argument_tensors

        shapes, random = argument_tensors(workload.mod), np.random.default_rng(0)
        below = indices_below(shapes)
        self._workload = workload
        self._given = [_drawn(random, shape, dtype, below) for shape, dtype in shapes]
        after = self._run(workload.mod)
        self._wanted = {
            p: a for p, (a, b) in enumerate(zip(after, self._given, strict=True)) if not np.array_equal(a, b)
        }

    def computes(self, sketch: int, choices: tuple[int, ...]) -> bool:
        """Whether a configuration's program does, built with the packing of its weights, which those that are timed leave out.
        Raises Invalid, and what TVM raises."""
        found = self._run(self._workload.schedule(sketch, choices).mod)
        return all(_close(wanted, found[place]) for place, wanted in self._wanted.items())

    def _run(self, mod: tvm.IRModule) -> list[Array]:
        tensors = [tvm.runtime.tensor(array) for array in self._given]
        tvm.tirx.build(mod, target=self._workload.target)["main"](*tensors)
        return [tensor.numpy() for tensor in tensors]


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str, below: int) -> Array:
    """Numbers between 0 and 1, which logarithms and roots take, and whole ones `below`, which may be places to read from."""
    if "float" in dtype:
        return np.asarray(random.random(shape)).astype(dtype)
    from workers.tvm_backend.arguments import whole_numbers

    return whole_numbers(random, shape, dtype, 2 if dtype == "bool" else below)


def _close(wanted: Array, found: Array) -> bool:
    if wanted.dtype.kind != "f":
        return bool(np.mean(wanted != found) <= STRAY)
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    off = np.abs(wanted - found, where=finite, out=np.zeros_like(wanted))
    return bool(np.mean(off > CLOSE * np.abs(wanted[finite]).max(initial=0.0)) <= STRAY)
