"""What an operator's last axis is, told from its program: convolutions in groups, and rows."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm_ffi import structural_walk

from workers.tvm_backend.blocks import KEPT, blocks, extents


def channels_of_a_group(function: tirx.PrimFunc) -> int | None:
    """How many channels, its last axis, a convolution computes from the same inputs; None where that is all or one of them, or
    they are another axis, and for other operators."""
    for block in blocks(function):
        kept = [one.var for one in block.iter_vars if one.iter_type == KEPT]
        if block.init is None or not kept:
            continue
        divisions: list[Any] = []
        structural_walk(block.body, [(tirx.FloorDiv, divisions.append)])
        for division in divisions:
            if division.a.same_as(kept[-1]) and isinstance(division.b, tirx.IntImm):
                return int(division.b)
    return None


def length_of_a_row(function: tirx.PrimFunc) -> int | None:
    """Of the last axis of what its last block writes; None where it has none."""
    kept = [extent for block in blocks(function)[-1:] for extent in extents(block, KEPT)]
    return kept[-1] if kept else None
