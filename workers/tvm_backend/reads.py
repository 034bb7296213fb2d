"""What the values of an argument decide in a program: where others are read, and what is divided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import ir, tirx
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import blocks

DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def looked_up(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Places of the arguments of which other tensors tell what is read, as of an embedding's table some rows."""
    found: list[Any] = []

    def look(load: Any) -> None:
        if any(_loads(index) for index in load.indices):
            found.append(load.source)

    _walk(function, [(ir.TensorLoad, look)])
    return _places(function, found)


def divisors(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Places of the arguments that something is divided by: a whole number by 0 ends the process."""
    found: list[Any] = []

    def look(division: Any) -> None:
        found.extend(load.source for load in _loads(division.b))

    _walk(function, [(kind, look) for kind in DIVISIONS])
    return _places(function, found)


def _walk(function: tirx.PrimFunc, looks: list[tuple[type, Callable[[Any], None]]]) -> None:
    for block in blocks(function):
        structural_walk(block.body, looks)


def _loads(expression: Any) -> list[Any]:
    loads: list[Any] = []
    structural_walk(expression, [(ir.TensorLoad, loads.append)])
    return loads


def _places(function: tirx.PrimFunc, found: list[Any]) -> tuple[int, ...]:
    return tuple(place for place, one in enumerate(function.params) if any(one.same_as(other) for other in found))
