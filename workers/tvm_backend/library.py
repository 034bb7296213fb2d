"""From best configurations to a shared library of the whole network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm import relax, s_tir, tirx
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.schedule import Trace
from tvm_ffi import structural_walk

from workers.tvm_backend.hardware import is_gpu
from workers.tvm_backend.importer import Imported
from workers.tvm_backend.lowering import PIPELINE
from workers.tvm_backend.operators import Extracted, extract, with_spaces
from workers.tvm_backend.prepacking import Prepack
from workers.tvm_backend.programs import COMMON_LEFT, Workload, quickly
from workers.tvm_backend.unchecked import marked

GRAPH = "relax.backend.use_cuda_graph"
"""A GPU's programs are started together, as a graph that was recorded once: each alone takes some microseconds to start."""
Timed = tuple[int, tuple[int, ...], float]
"""Of an operator: sketch, choices, and the seconds it took when it was timed alone."""


def _json_database(directory: Path) -> ms.Database:
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("database_workload.json", "database_tuning_record.json"):
        (directory / name).unlink(missing_ok=True)  # TVM appends
    return ms.database.JSONDatabase(work_dir=str(directory))


def _apart(mod: tvm.IRModule) -> tuple[tvm.IRModule, tvm.IRModule]:
    """What is one block of TensorIR, as TVM scatters elements, by itself: the pass that packs weights looks within one."""
    functions = dict(mod.functions_items())
    opaque = {variable: function for variable, function in functions.items() if _opaque(function)}
    others = {variable: function for variable, function in functions.items() if variable not in opaque}
    return tvm.IRModule(others, attrs=mod.attrs, global_infos=mod.global_infos), tvm.IRModule(opaque)


def _opaque(function: Any) -> bool:
    found: list[Any] = []
    if isinstance(function, tirx.PrimFunc):
        structural_walk(function.body, [(s_tir.SBlock, found.append)])
    return isinstance(function, tirx.PrimFunc) and len(found) < 2


def compile_network(
    imported: Imported, records: ms.Database | None, target: tvm.target.Target, code: tvm.target.Target | None = None
) -> relax.VMExecutable:
    """The whole network; an operator without a record stays a naive serial loop, or on a GPU TVM's plain schedule: TVM untuned.

    `code`: what machine code is made for, else the `target` at LLVM's second level: at the third its vectoriser breaks plain
    loops here and there ("instruction does not dominate all uses").
    """
    mod = imported.mod
    if records is not None:
        # Made inside the target's scope: the pass keys its look-up by it.
        with target, records:
            mod = relax.transform.MetaScheduleApplyDatabase(enable_warning=True)(mod)
    passes = [
        relax.transform.SplitLayoutRewritePreproc(),
        relax.transform.LiftTransformParams(),
        Prepack(),
        relax.transform.FoldConstant(),
        # What packed the weights would be compiled, and shipped.
        relax.transform.DeadCodeElimination(),
    ]
    config = {**COMMON_LEFT, GRAPH: True} if is_gpu(target) else COMMON_LEFT
    with target, tvm.transform.PassContext(config=config):
        if records is not None:
            mod, opaque = _apart(mod)
            mod = tvm.transform.Sequential(passes)(mod)
            mod.update(opaque)
        return tvm.compile(marked(mod), target=code or quickly(target), tir_pipeline=PIPELINE)


@dataclass(frozen=True)
class Network:
    """An imported network with its operators and their spaces, to be built with any of their configurations."""

    imported: Imported
    extracted: list[Extracted]
    workloads: list[Workload]
    target: tvm.target.Target
    _traces: dict[tuple[Any, ...], Trace] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, imported: Imported, target: tvm.target.Target) -> Network:
        extracted, workloads, _ = with_spaces(extract(imported.mod, target), target)
        return cls(imported, extracted, workloads, target)

    @property
    def indices(self) -> dict[str, int]:
        """Of the operators, by the names under which the network calls them."""
        return {task.name: index for index, task in enumerate(self.extracted)}

    def compiled(self, configurations: Mapping[int, Timed]) -> relax.VMExecutable:
        return compile_network(self.imported, self.database(configurations), self.target)

    def database(self, configurations: Mapping[int, Timed], directory: Path | None = None) -> ms.Database:
        """MetaSchedule's, with one record an operator: in memory, or as TVM's two JSON files in `directory`."""
        found = _json_database(directory) if directory is not None else ms.database.MemoryDatabase()
        for index, (sketch, choices, seconds) in sorted(configurations.items()):
            mod, workload = self.extracted[index].mod, self.workloads[index]
            trace, entry = self._trace(index, sketch, choices), found.commit_workload(mod)
            arguments = ms.arg_info.ArgInfo.from_entry_func(mod, remove_preproc=True)
            found.commit_tuning_record(ms.database.TuningRecord(trace, entry, [seconds], workload.target, arguments))
        return found

    def _trace(self, index: int, *configuration: Any) -> Trace:
        """Of a configuration, scheduled once for all libraries and databases; raises Invalid."""
        if (index, *configuration) not in self._traces:
            self._traces[index, *configuration] = self.workloads[index].schedule(*configuration).trace
        return self._traces[index, *configuration]
