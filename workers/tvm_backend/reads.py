"""What the values of an argument decide in a program: where others are read, and what is divided."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tvm import ir, tirx
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import blocks

DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def loads(part: Any) -> list[Any]:
    """What a statement or an expression reads."""
    found: list[Any] = []
    structural_walk(part, [(ir.TensorLoad, found.append)])
    return found


def looked_up(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Places of the arguments of which other tensors tell what is read, as of an embedding's table some rows."""
    every = (load for block in blocks(function) for load in loads(block.body))
    return _places(function, [load.source for load in every if any(map(loads, load.indices))])


def divisors(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Places of the arguments that whole numbers are divided by, or by what is computed of them: 0 ends the process."""
    found: list[Any] = []
    made: dict[Any, list[Any]] = defaultdict(list)
    for block in blocks(function):
        read = [load.source for load in loads(block.body)]
        for write in block.writes:
            made[write.source] += read
        divisions: list[Any] = []
        structural_walk(block.body, [(kind, divisions.append) for kind in DIVISIONS])
        whole = (one.b for one in divisions if "int" in str(one.b.ty))
        found += [load.source for by in whole for load in loads(by)]
    for source in found:  # which grows meanwhile
        found += [one for one in made.pop(source, ()) if not any(map(one.same_as, found))]
    return _places(function, found)


def _places(function: tirx.PrimFunc, found: list[Any]) -> tuple[int, ...]:
    return tuple(place for place, one in enumerate(function.params) if any(map(one.same_as, found)))
