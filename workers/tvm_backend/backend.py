"""TVM on this machine as the engine's Backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import tvm

from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.engine.start import Machine
from workers.messages.spec import RunSpec
from workers.tvm_backend.code_size import code_size
from workers.tvm_backend.hardware import first_cache, vector_lanes, vector_registers
from workers.tvm_backend.importer import import_network
from workers.tvm_backend.operators import extract, footprint, operators, with_spaces
from workers.tvm_backend.pool import Pool
from workers.tvm_backend.programs import Invalid, save_workloads


class LocalBackend:
    """Compiles and runs in `pool`, which it owns from now on: close it. `layout` and `notes` are its `Imported`'s."""

    def __init__(
        self,
        pool: Pool,
        spec: RunSpec,
        model: onnx.ModelProto,
        evaluator: tuple[str, dict[str, Any]],
        machine: Machine,
        work_dir: Path,
        report: Callable[[str, str], None],
    ) -> None:
        """`report(phase, text)` tells what the long start is doing."""
        self._pool = pool
        self._seen: set[tuple[int, str]] = set()
        try:
            target = tvm.target.Target(spec.target)
            report("importing", "importing the network and folding its constants")
            imported = import_network(model, spec.inputs, target, spec.layout, spec.balance)
            self.layout, self.notes = imported.layout, imported.notes
            extracted = extract(imported.mod, target)
            del imported  # with the weights, which only the process that compiles the whole network needs
            report("spaces", f"drawing up the design spaces of {len(extracted)} operators")
            extracted, workloads, left = with_spaces(extracted, target)
            if left:
                self.notes += (f"operators that TVM has no schedules for, compiled as they are: {', '.join(left)}",)
            self.workloads = workloads
            save_workloads(workloads, work_dir / "workloads.json")
            self._operators = operators(extracted, workloads, spec.peak_flops, spec.bandwidth, machine)
            timing = {"name": evaluator[0], "parameters": evaluator[1]}
            self._pool.load(work_dir / "workloads.json", timing, footprint(extracted, workloads))
        except BaseException:
            self.close()
            raise

    def operators(self) -> Sequence[Operator]:
        return self._operators

    def remember(self, operator: int, identity: str) -> None:
        self._seen.add((operator, identity))

    def take_up(self, best: Mapping[str, Mapping[str, Any]]) -> None:
        """`best` are the fastest programs so far of a run that goes on (`messages.orders.best_of`): their code, which is in no
        log, is counted anew."""
        for index, found in best.items():
            operator, configuration = int(index), Configuration(found["sketch"], tuple(found["choices"]))
            if self._operators[operator].holds(configuration):
                workload = self.workloads[operator]
                with suppress(Invalid):
                    program = workload.schedule(configuration.sketch, configuration.choices).mod["main"]
                    self._pool.thrift.fastest(operator, code_size(program, vector_lanes(workload.target)))

    def measure(self, candidates: Sequence[Candidate], incumbents: dict[int, float]) -> list[Outcome]:
        return self._pool.measure(candidates, self._seen, incumbents)

    def run_times(self) -> list[tuple[float, ...]]:
        """Seconds of the first single runs of each candidate of the last `measure`; empty where nothing was timed."""
        return [task.times for task in self._pool.tasks]

    def spent(self) -> dict[str, float]:
        return dict(self._pool.spent)

    def close(self) -> None:
        self._pool.close()


def machine_of(target: dict[str, Any], threads: int) -> Machine:
    """Lanes and registers by the target's vector extension, the cache of this machine; `target` as TVM is given it."""
    parsed = tvm.target.Target(target)
    return Machine(vector_lanes(parsed), vector_registers(parsed), threads, first_cache() or Machine.cache)
