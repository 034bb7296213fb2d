"""TVM as the engine's Backend: on this machine, or with a pool that times on another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import tvm

from workers.engine.gpu import Bounds, Gpu
from workers.engine.machine import Machine
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration, Operator
from workers.messages.spec import MEASURED, RunSpec
from workers.tvm_backend.code_size import code_size
from workers.tvm_backend.hardware import core_caches, is_gpu, vector_lanes, vector_registers
from workers.tvm_backend.importer import last_line
from workers.tvm_backend.layouts import BOTH, Drawn, clearly_fastest, draw
from workers.tvm_backend.nursery import nothing
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
        machine: Machine | Gpu,
        work_dir: Path,
        report: Callable[[str, str], None],
        meanwhile: Callable[[], object] = nothing,
    ) -> None:
        """`report(phase, text)` tells what the long start is doing; `meanwhile` is called at least once while others do it."""
        self._pool, self._meanwhile = pool, meanwhile
        self._seen: set[tuple[int, str]] = set()
        try:
            self._timing = {"name": evaluator[0], "parameters": evaluator[1]}
            drawn = partial(draw, spec, model, tvm.target.Target(spec.target), machine, report)
            if spec.layout == MEASURED:
                network, measured = self._fastest(drawn, work_dir, report)
            else:
                network, measured = drawn(spec.layout), ()
            self.layout, self.notes = network.layout, (*network.notes, *measured)
            self._load(network, work_dir)
            self.workloads, self._operators = network.workloads, network.operators
        except BaseException:
            self.close()
            raise

    def _fastest(
        self, drawn: Callable[[str], Drawn], work_dir: Path, report: Callable[[str, str], None]
    ) -> tuple[Drawn, tuple[str, ...]]:
        """The network in the layout whose first configurations take clearly less, and a sentence with what they took."""
        first = drawn(BOTH[0])
        if first.layout != BOTH[0]:  # the conversion does not hold, or there are no convolutions
            return first, ()
        try:
            ways = [first, drawn(BOTH[1])]
            _ = ways[1].operators  # which may not hold either
        except Exception as error:  # TVM raises whatever its C++ throws
            return first, (f"layout {first.layout}: {BOTH[1]} does not hold here ({last_line(error)})",)
        if ways[1].left != first.left:  # what has no schedules is in no sum
            return first, (f"layout {first.layout}: in {BOTH[1]} TVM has schedules for other operators",)
        latencies = []
        for way in ways:
            self._load(way, work_dir)
            latencies.append(way.latency(self._pool, report))
        told = ", ".join(f"{way.layout} {1e3 * seconds:.3g} ms" for way, seconds in zip(ways, latencies, strict=True))
        return ways[clearly_fastest(latencies)], (f"layout by first configurations: {told}",)

    def _load(self, network: Drawn, work_dir: Path) -> None:
        save_workloads(network.workloads, work_dir / "workloads.json")
        largest = max((workload.held for workload in network.workloads), default=0)
        self._pool.load(
            work_dir / "workloads.json",
            self._timing,
            network.touched,
            largest,
            meanwhile=lambda: (network.operators, self._meanwhile()),
        )

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


def machine_of(target: dict[str, Any], threads: int, caches: Sequence[int | None] | None = None) -> Machine | Gpu:
    """Lanes and registers by the target's vector extension; `target` as TVM is given it. The `caches`, as `core_caches` tells
    them, are this machine's where no others are given. A GPU's `threads` are its multiprocessors."""
    parsed = tvm.target.Target(target)
    if is_gpu(parsed):
        return Gpu(threads, Bounds(target["max_threads_per_block"], target["max_shared_memory_per_block"]))
    machine = Machine(vector_lanes(parsed), vector_registers(parsed), threads)
    return machine.with_caches(core_caches() if caches is None else caches)
