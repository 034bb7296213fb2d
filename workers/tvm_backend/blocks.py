"""The blocks of a TensorIR function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm_ffi import structural_walk

KEPT, SUMMED = tirx.IterVar.DataPar, tirx.IterVar.CommReduce
"""Kinds of a block's axes: of what it writes, and what it sums up along."""
BY = "schedule_rule"
"""The annotation of a block that says which of our rules schedules it, in place of TVM's."""


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


def annotated(mod: tvm.IRModule, notes: Callable[[tirx.PrimFunc], Mapping[str, Mapping[str, Any]]]) -> tvm.IRModule:
    """With the annotations that `notes` makes for blocks of an operator, by their names; none leave it as it is."""
    for variable, function in mod.functions_items():
        if isinstance(function, tirx.PrimFunc) and (made := notes(function)):
            schedule = s_tir.Schedule(tvm.IRModule({"main": function}))
            for name, values in made.items():
                for key, value in values.items():
                    schedule.annotate(schedule.get_sblock(name), key, value)
            mod[variable] = schedule.mod["main"]
    return mod
