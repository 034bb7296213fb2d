"""A process that compiles candidates and runs them in place: no file, no archive, no link.

Orders come as JSON messages on a socket, one answer each:

load     {workloads: path, target, evaluator: {name, parameters}}       -> {operators}
apply    {id, operator, sketch, choices}       -> {identity, choices | null} or {invalid}
compile  {id}                                  -> {seconds} or {error}
run      {id, incumbent | null}                -> {seconds, spread, runs, stopped, taken} or {error}
drop     {}                                    -> {}: forgets every program

A kernel may crash, hang or exhaust memory here: the pool sees the process die or be late, and that is the candidate's failure.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from workers.tvm_backend import runtime

# A timed run is at least this long: shorter programs are repeated inside one, since a call and two clock readings cost
# about 2 µs.
SHORTEST_RUN = 200e-6

Answer = dict[str, Any]


class Worker:
    """State of one worker: the workloads, and the programs of the current batch by candidate id."""

    def __init__(self) -> None:
        import tvm

        self.tvm = tvm
        self.device = tvm.cpu()
        self.schedules: dict[int, tuple[int, Any]] = {}
        self.programs: dict[int, tuple[int, Any, Any, list[tuple[tuple[int, ...], str]]]] = {}
        self.fill = tvm.get_global_func("tvm.contrib.random.random_fill_for_measure")
        self.storage: tuple[int, dict[int, Any]] | None = None

    def load(self, workloads: str, target: dict[str, Any], evaluator: dict[str, Any]) -> Answer:
        from workers.engine.evaluator import evaluator_from
        from workers.tvm_backend.programs import load_workloads

        self.target = self.tvm.target.Target(target)
        self.workloads = load_workloads(Path(workloads), self.target)
        self.evaluator = evaluator_from(evaluator["name"], evaluator["parameters"])
        return {"operators": len(self.workloads)}

    def apply(self, id: int, operator: int, sketch: int, choices: list[int]) -> Answer:
        from workers.tvm_backend.programs import Invalid, key_of

        workload = self.workloads[operator]
        try:
            schedule = workload.schedule(sketch, tuple(choices))
        except Invalid as error:
            return {"invalid": str(error)}
        self.schedules[id] = (operator, schedule)
        found = workload.read_back(schedule, sketch, tuple(choices))
        return {"identity": key_of(schedule.mod), "choices": None if found is None else list(found)}

    def compile(self, id: int) -> Answer:
        from workers.tvm_backend.programs import argument_tensors, compile_program

        operator, schedule = self.schedules.pop(id)
        began = time.perf_counter()
        program = compile_program(schedule, self.target)
        entry = program["main"]  # machine code is made on the first look-up
        self.programs[id] = (operator, program, entry, argument_tensors(schedule.mod))
        return {"seconds": time.perf_counter() - began}

    def run(self, id: int, incumbent: float | None) -> Answer:
        operator, program, entry, shapes = self.programs.pop(id)
        began = time.perf_counter()
        arguments = self._arguments(operator, shapes)
        times: list[float] = []
        sample = self._sampler(program, entry, arguments)
        while (wanted := self.evaluator.more(times, incumbent)) > 0:
            times.extend(sample() for _ in range(wanted))
        seconds, spread = self.evaluator.estimate(times)
        return {
            "seconds": seconds,
            "spread": spread,
            "runs": len(times),
            "stopped": self.evaluator.verdict(times, incumbent),
            "taken": time.perf_counter() - began,
        }

    def drop(self) -> Answer:
        self.schedules.clear()
        self.programs.clear()
        return {}

    def _sampler(self, program: Any, entry: Any, arguments: list[Any]) -> Callable[[], float]:
        """Seconds of one run. The first sample is one plain call, so that a hopeless program is run once only."""
        state: dict[str, Any] = {}

        def sample() -> float:
            if "evaluate" in state:
                return float(state["evaluate"](*arguments).mean)
            began = time.perf_counter()
            entry(*arguments)
            taken = time.perf_counter() - began
            if taken < 0.01:  # the first call also wakes threads and fills caches
                began = time.perf_counter()
                entry(*arguments)
                taken = min(taken, time.perf_counter() - began)
            number = max(1, math.ceil(SHORTEST_RUN / max(taken, 1e-7)))
            state["evaluate"] = program.time_evaluator("main", self.device, number=number, repeat=1, min_repeat_ms=0)
            return taken

        return sample

    def _tensor(self, shape: tuple[int, ...], dtype: str) -> Any:
        if not dtype.startswith(("float", "bfloat")):
            # Integers may be indices, and a gather does not check them: 0 exists everywhere.
            return self.tvm.runtime.tensor(np.zeros(shape, dtype), self.device)
        tensor = self.tvm.runtime.empty(shape, dtype=dtype, device=self.device)
        self.fill(tensor)
        return tensor

    def _arguments(self, operator: int, shapes: list[tuple[tuple[int, ...], str]]) -> list[Any]:
        """Random tensors in the shapes this program wants: packing its weights changes shapes, and may pad them.

        The storage is kept while the operator stays the same; never two operators' at once, weights can be large.
        """
        if self.storage is None or self.storage[0] != operator:
            self.storage = (operator, {})
        kept = self.storage[1]
        for place, (shape, dtype) in enumerate(shapes):
            if place not in kept or math.prod(kept[place].shape) < math.prod(shape):
                kept[place] = self._tensor(shape, dtype)
        return [kept[place]._create_view(shape) for place, (shape, _) in enumerate(shapes)]


def serve(connection: Connection) -> None:
    """Answers orders until the other side closes."""
    worker = Worker()
    verbs: dict[str, Callable[..., Answer]] = {
        verb: getattr(worker, verb) for verb in ("load", "apply", "compile", "run", "drop")
    }
    while True:
        try:
            order = json.loads(connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            return
        try:
            answer = verbs[order.pop("verb")](**order)
        except MemoryError:
            answer = {"error": "out of memory", "cause": "memory"}
        except Exception as error:  # a failed build is an answer; TVM raises whatever its C++ throws
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[-300:]}"}
        connection.send_bytes(json.dumps(answer).encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--target", required=True)
    arguments = parser.parse_args()
    runtime.load(json.loads(arguments.target))
    serve(Connection(arguments.fd))
    os._exit(0)  # TVM's thread pool has nothing to say at exit


if __name__ == "__main__":
    main()
