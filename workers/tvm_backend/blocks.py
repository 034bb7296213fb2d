"""The blocks of a TensorIR function."""

from __future__ import annotations

from typing import Any

from tvm import s_tir, tirx
from tvm_ffi import structural_walk

KEPT, SUMMED = tirx.IterVar.DataPar, tirx.IterVar.CommReduce
"""Kinds of a block's axes: of what it writes, and what it sums up along."""


def extents(block: Any, kind: int) -> list[int]:
    """Of its axes of this kind."""
    return [int(one.dom.extent) for one in block.iter_vars if one.iter_type == kind]


def blocks(function: tirx.PrimFunc) -> list[Any]:
    """Those that compute: all but the root."""
    found: list[Any] = []
    structural_walk(function.body, [(s_tir.SBlock, found.append)])
    return [block for block in found if block.name_hint != "root"]


def has_results_beside(function: tirx.PrimFunc) -> bool:
    """Whether other blocks than the last one write to an argument."""
    written = {write.source for block in blocks(function)[:-1] for write in block.writes}
    return any(one in written for one in function.params)
