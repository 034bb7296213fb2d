"""A process that compiles candidates and runs them in place: no file, no archive, no link.

Orders come as JSON messages on a socket, one answer each:

load     {workloads: path, target, evaluator: {name, parameters}, footprint} -> {operators}
apply    {id, operator, sketch, choices}       -> {identity, choices | null, size} or {invalid}
compile  {id}                                  -> {seconds} or {error}
run      {id, incumbent | null, patience, last} -> {seconds, spread, runs, stopped, taken, waited, times} or {error}
drop     {}                                    -> {}: forgets every program

Errors come with the seconds that they took ("taken"). A kernel may crash, hang or exhaust memory here: the pool sees the
process die or be late, and that is the candidate's failure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workers.engine.evaluator.estimate import KEPT_RUNS
from workers.tvm_backend import runtime

if TYPE_CHECKING:
    from workers.tvm_backend.moment import Moment

Answer = dict[str, Any]

EXHAUSTED = ("MemoryError", "bad_alloc", "annot allocate", "ut of memory")
"""In what Python, C++, the system and LLVM say when there is no memory left."""


class Worker:
    """State of one worker: the workloads, and the programs of the current batch by candidate id."""

    def __init__(self) -> None:
        import tvm

        self.tvm = tvm
        self.schedules: dict[int, tuple[int, Any]] = {}
        self.programs: dict[int, tuple[int, Any, list[tuple[tuple[int, ...], str]]]] = {}
        self.cores = runtime.spread_threads()
        self.moment: Moment | None = None

    def load(self, workloads: str, target: dict[str, Any], evaluator: dict[str, Any], footprint: int) -> Answer:
        from workers.engine.evaluator import evaluator_from
        from workers.tvm_backend.arguments import Arguments
        from workers.tvm_backend.handover import Handover
        from workers.tvm_backend.hardware import vector_lanes
        from workers.tvm_backend.moment import Moment
        from workers.tvm_backend.programs import load_workloads

        self.target = self.tvm.target.Target(target)
        self.lanes = vector_lanes(self.target)
        self.workloads = load_workloads(Path(workloads), self.target)
        self.evaluator = evaluator_from(evaluator["name"], evaluator["parameters"])
        self.handover = Handover(self.target)
        self.moment = self.moment or Moment(self.target)  # what is usual stays so
        self.__dict__.pop("arguments", None)  # two of them would hold twice the memory
        self.arguments = Arguments(footprint, self.handover)
        gc.freeze()  # TVM's modules stay: looking through them again was a twelfth of a small program's compile time
        return {"operators": len(self.workloads)}

    def apply(self, id: int, operator: int, sketch: int, choices: list[int]) -> Answer:
        from workers.tvm_backend.code_size import code_size
        from workers.tvm_backend.programs import Invalid, key_of

        workload = self.workloads[operator]
        try:
            schedule = workload.schedule(sketch, tuple(choices))
        except Invalid as error:
            return {"invalid": str(error)}
        self.schedules[id] = (operator, schedule)
        found = workload.read_back(schedule, sketch, tuple(choices))
        return {
            "identity": key_of(schedule.mod),
            "choices": None if found is None else list(found),
            "size": code_size(schedule.mod["main"], self.lanes),
        }

    def compile(self, id: int) -> Answer:
        from workers.tvm_backend.programs import argument_tensors, compile_program

        operator, schedule = self.schedules.pop(id)
        began = time.perf_counter()
        program = compile_program(schedule, self.target)
        program["main"]  # machine code is made on the first look-up
        self.programs[id] = (operator, program, argument_tensors(schedule.mod))
        return {"seconds": time.perf_counter() - began}

    def run(self, id: int, incumbent: float | None, patience: float, last: bool) -> Answer:
        from workers.tvm_backend.stopwatch import Stopwatch, timed

        assert self.moment is not None
        operator, program, shapes = self.programs.pop(id) if last else self.programs[id]
        began = time.perf_counter()
        workload = self.workloads[operator]
        given = self.arguments.of(operator, shapes, workload.weights, workload.batch)
        stopwatch = Stopwatch(program, given, self.handover)
        with runtime.on_core(self.cores):
            (times, stopped), waited = self.moment.of(partial(timed, stopwatch, self.evaluator, incumbent), patience)
        seconds, spread = self.evaluator.estimate(times)
        return {
            "seconds": seconds,
            "spread": spread,
            "runs": len(times),
            "stopped": stopped,
            "taken": time.perf_counter() - began - waited,
            "waited": waited,
            "times": times[:KEPT_RUNS],
        }

    def drop(self) -> Answer:
        self.schedules.clear()
        self.programs.clear()
        return {}


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
        began = time.perf_counter()
        try:
            answer = verbs[order.pop("verb")](**order)
        except Exception as error:  # a failed build is an answer; TVM raises whatever its C++ throws
            kind, text = type(error).__name__, str(error).strip()
            answer = {"error": f"{kind}: {text[-300:]}", "taken": time.perf_counter() - began}
            if any(sign in f"{kind}: {text}" for sign in EXHAUSTED):
                answer["cause"] = "memory"
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
