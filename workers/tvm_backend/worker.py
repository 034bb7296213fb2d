"""The process that compiles candidates and runs them in place: no file, no archive, no link.

It comes in two ages. The first loads TVM and the operators, and makes the second of itself, worker for worker. Orders come as
JSON messages on a socket, one answer each; to the first:

load     {workloads: path, evaluator: {name, parameters}, footprint} -> {operators}
fork     {}, and a socket                      -> {pid}: of a worker that takes orders there
end      {pid}                                 -> {status}: the worker is gone

and to a worker, `begin` once:

begin    {lately: looks at the machine's moment} -> {}
apply    {id, operator, sketch, choices}       -> {identity, choices | null, size} or {invalid}
compile  {programs: [as for apply]}            -> {seconds} or {error}: in one module
run      {id, incumbent | null, patience, last} -> {seconds, spread, runs, stopped, taken, waited, looks, times} or {error}
drop     {}                                    -> {}: forgets every program

Errors come with the seconds that they took ("taken"). A kernel may crash, hang or exhaust memory here: the pool sees the
process die or be late, and that is the candidate's failure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import Any

from workers.engine.evaluator.estimate import KEPT_RUNS
from workers.sandbox.confine import die_with_parent
from workers.tvm_backend import runtime

Answer = dict[str, Any]

PARENTS, WORKERS = ("load", "fork", "end"), ("begin", "apply", "compile", "run", "drop")
EXHAUSTED = ("MemoryError", "bad_alloc", "annot allocate", "ut of memory")
"""In what Python, C++, the system and LLVM say when there is no memory left."""


class Worker:
    """State of one worker: the workloads, and the programs of the current batch by candidate id. What needs no threads is
    made before it is forked, the rest in `begin`."""

    def __init__(self, target: dict[str, Any]) -> None:
        import tvm

        from workers.tvm_backend.handover import Handover
        from workers.tvm_backend.hardware import vector_lanes
        from workers.tvm_backend.moment import Moment

        threads = int(os.environ["TVM_NUM_THREADS"])
        self.target = tvm.target.Target(target)
        self.lanes = vector_lanes(self.target)
        self.handover, self.moment = Handover(self.target, threads), Moment(self.target, threads)
        self.schedules: dict[int, Any] = {}
        self.programs: dict[int, tuple[int, Any, list[tuple[tuple[int, ...], str]]]] = {}

    def load(self, workloads: str, evaluator: dict[str, Any], footprint: int) -> Answer:
        from workers.engine.evaluator import evaluator_from
        from workers.tvm_backend.programs import load_workloads

        self.workloads = load_workloads(Path(workloads), self.target)
        self.evaluator = evaluator_from(evaluator["name"], evaluator["parameters"])
        self.footprint = footprint
        gc.collect()
        gc.freeze()  # what stays: looking through it again was a twelfth of a small program's compile time
        return {"operators": len(self.workloads)}

    def begin(self, lately: list[float]) -> Answer:
        from workers.tvm_backend.arguments import Arguments

        self.cores = runtime.spread_threads()
        self.moment.lately.extend(lately)
        self.arguments = Arguments(self.footprint, self.handover)
        return {}

    def apply(self, id: int, operator: int, sketch: int, choices: list[int]) -> Answer:
        from workers.tvm_backend.code_size import code_size
        from workers.tvm_backend.programs import Invalid, key_of

        workload = self.workloads[operator]
        try:
            schedule = workload.schedule(sketch, tuple(choices))
        except Invalid as error:
            return {"invalid": str(error)}
        self.schedules[id] = schedule
        found = workload.read_back(schedule, sketch, tuple(choices))
        return {
            "identity": key_of(schedule.mod),
            "choices": None if found is None else list(found),
            "size": code_size(schedule.mod["main"], self.lanes),
        }

    def compile(self, programs: list[dict[str, Any]]) -> Answer:
        from workers.tvm_backend.programs import argument_tensors, compile_programs

        schedules = [self._scheduled(**program) for program in programs]
        began = time.perf_counter()
        entries = compile_programs(schedules, self.target)
        for program, schedule, entry in zip(programs, schedules, entries, strict=True):
            self.programs[program["id"]] = (program["operator"], entry, argument_tensors(schedule.mod))
        return {"seconds": time.perf_counter() - began}

    def _scheduled(self, id: int, operator: int, sketch: int, choices: list[int]) -> Any:
        """Made anew where another worker applied it."""
        return self.schedules.pop(id, None) or self.workloads[operator].schedule(sketch, tuple(choices))

    def run(self, id: int, incumbent: float | None, patience: float, last: bool) -> Answer:
        from workers.tvm_backend.stopwatch import Stopwatch, timed

        operator, entry, shapes = self.programs.pop(id) if last else self.programs[id]
        began = time.perf_counter()
        workload = self.workloads[operator]
        given = self.arguments.of(operator, shapes, workload.weights, workload.batch)
        stopwatch = Stopwatch(entry, given, self.handover)
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
            "looks": self.moment.looks,
            "times": times[:KEPT_RUNS],
        }

    def drop(self) -> Answer:
        self.schedules.clear()
        self.programs.clear()
        return {}


class Parent:
    """Makes workers of the process that it is in, which must have one thread alone: of others a fork has the locks only."""

    def __init__(self, connection: Connection, target: dict[str, Any]) -> None:
        self.connection = connection
        self.worker = Worker(target)
        self.statuses: dict[int, int | None] = {}
        """By worker; None while it may live, which keeps its number from being another's."""

    def load(self, **order: Any) -> Answer:
        return self.worker.load(**order)

    def fork(self) -> Answer:
        with Connection(recv_handle(self.connection)) as handed:
            parent = os.getpid()
            if len(os.listdir("/proc/self/task")) > 1:
                raise RuntimeError("the process that workers are made of has threads")
            if pid := os.fork():
                self.statuses[pid] = None
                return {"pid": pid}
            try:
                die_with_parent(parent)
                self.connection.close()
                serve(handed, self.worker, WORKERS)
                os._exit(0)  # TVM's thread pool has nothing to say at exit
            except BaseException:
                traceback.print_exc()
                os._exit(1)

    def end(self, pid: int) -> Answer:
        """Of an earlier parent's worker too: that went with it."""
        if self.statuses.setdefault(pid, -signal.SIGKILL) is None:
            os.kill(pid, signal.SIGKILL)
            self.statuses[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return {"status": self.statuses[pid]}


def serve(connection: Connection, one: Worker | Parent, names: Iterable[str]) -> None:
    """Answers orders until the other side closes."""
    verbs: dict[str, Callable[..., Answer]] = {name: getattr(one, name) for name in names}
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
    target = json.loads(arguments.target)
    runtime.load(target)
    connection = Connection(arguments.fd)
    serve(connection, Parent(connection, target), PARENTS)
    os._exit(0)


if __name__ == "__main__":
    main()
