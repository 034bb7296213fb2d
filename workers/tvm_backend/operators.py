"""The operators of an imported network, in network order, with work, design space and first configurations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm.s_tir.meta_schedule.relax_integration import extract_tasks

from workers.engine.gpu import Gpu
from workers.engine.machine import Machine
from workers.engine.space import Operator
from workers.engine.start import first_configurations
from workers.tvm_backend.blocks import blocks
from workers.tvm_backend.importer import calls
from workers.tvm_backend.programs import Workload, key_of

FIRST = 4


@dataclass(frozen=True)
class Extracted:
    """An operator before its space is known."""

    name: str
    mod: tvm.IRModule
    weight: int


def extract(mod: tvm.IRModule, target: tvm.target.Target) -> list[Extracted]:
    """Unique operators in network order; TVM gives them in hash order."""
    place: dict[str, int] = {}
    for number, name in enumerate(calls(mod)):
        place.setdefault(name, number)
    tasks = sorted(extract_tasks(mod, target), key=lambda task: place.get(task.task_name, math.inf))
    return [Extracted(task.task_name, task.dispatched[0], int(task.weight)) for task in tasks]


def with_spaces(
    extracted: Sequence[Extracted], target: tvm.target.Target
) -> tuple[list[Extracted], list[Workload], list[str]]:
    """Operators and their design spaces, and the names of those left out because TVM has no schedules for them, or its rules
    fail on them; raises what TVM raises where its rules fail and none is left."""
    kept, workloads, left = [], [], []
    failure: Exception | None = None
    for task in extracted:
        try:
            workload = Workload.generate(task.mod, target) if _schedulable(task.mod["main"]) else None
        except Exception as error:  # TVM raises whatever its C++ throws
            workload, failure = None, error
        if workload is None:
            left.append(task.name)
        else:
            kept.append(task)
            workloads.append(workload)
    if failure is not None and not kept:
        raise failure
    return kept, workloads, left


def _schedulable(function: tvm.tirx.PrimFunc) -> bool:
    """Whether every block says what it writes; TVM's schedules refuse those that do not, such as a scatter's."""
    return all(block.writes for block in blocks(function))


def operators(
    extracted: Sequence[Extracted],
    workloads: Sequence[Workload],
    peak_flops: float,
    bandwidth: float,
    machine: Machine | Gpu,
) -> list[Operator]:
    """The engine's view; `work` is what takes longest at the machine's peaks: FLOPs, or bytes x machine balance."""
    found = []
    for index, (task, workload) in enumerate(zip(extracted, workloads, strict=True)):
        flops, size = workload.flops, float(workload.touched)
        found.append(
            Operator(
                index=index,
                name=task.name,
                key=key_of(task.mod),
                weight=task.weight,
                flops=flops,
                bytes=size,
                work=max(flops / workload.at_once, size * peak_flops / bandwidth),
                sketches=workload.sketches,
                start=first_configurations(workload.sketches, machine, FIRST),
                at_once=workload.at_once,
                machine=machine,
            )
        )
    return found
