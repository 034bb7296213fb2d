"""The process that compiles candidates and runs them in place: no file, no archive, no link. For a device elsewhere it makes
libraries of them, which that device runs (`workers.device`).

It comes in two ages. The first loads TVM and the operators, and makes the second of itself, worker for worker. Orders come as
JSON messages on a socket, one answer each; to the first:

load     {workloads: path, evaluator: {name, parameters}, footprint} -> {operators}
fork     {}, and a socket                      -> {pid}: of a worker that takes orders there
end      {pid}                                 -> {status}: the worker is gone

and to a worker, `begin` once:

begin    {lately: looks at the machine's moment} -> {}
apply    {id, operator, sketch, choices}       -> {identity, choices | null, size} or {invalid}
compile  {programs: [as for apply]}            -> {seconds} or {error}: in one module
run      {id, incumbent | null, patience, last, lately} -> as `Timer.run`, or {error}
drop     {}                                    -> {}: forgets every program

One that builds for a device runs nothing, and answers "compile" with {seconds, library: path, programs: as `Timer.keep` takes
them}.

Errors come with the seconds that they took ("taken"). A kernel may crash, hang or exhaust memory here: the pool sees the
process die or be late, and that is the candidate's failure.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import Any

from workers.sandbox.confine import die_with_parent
from workers.tvm_backend import runtime

Answer = dict[str, Any]

PARENTS, BUILDERS = ("load", "fork", "end"), ("begin", "apply", "compile", "drop")
EXHAUSTED = ("MemoryError", "bad_alloc", "annot allocate", "ut of memory")
"""In what Python, C++, the system and LLVM say when there is no memory left."""


class Builder:
    """What schedules programs: the operators, and the scheduled programs of the current batch by candidate id. What needs no
    threads is made before it is forked, the rest in `begin`."""

    def __init__(self, target: dict[str, Any]) -> None:
        import tvm

        from workers.tvm_backend.hardware import vector_lanes

        self.target = tvm.target.Target(target)
        self.lanes = vector_lanes(self.target)
        self.schedules: dict[int, Any] = {}

    def load(self, workloads: str, evaluator: dict[str, Any], footprint: Sequence[int]) -> Answer:
        from workers.tvm_backend.programs import load_workloads

        self.workloads = load_workloads(Path(workloads), self.target)
        gc.collect()
        gc.freeze()  # what stays: looking through it again was a twelfth of a small program's compile time
        return {"operators": len(self.workloads)}

    def begin(self, lately: list[float]) -> Answer:
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

    def drop(self) -> Answer:
        self.schedules.clear()
        return {}

    def scheduled(self, programs: list[dict[str, Any]]) -> list[Any]:
        return [self._scheduled(**program) for program in programs]

    def described(self, operator: int, schedule: Any) -> Answer:
        """What `Timer.keep` has to know of a program."""
        from workers.tvm_backend.programs import argument_tensors

        workload = self.workloads[operator]
        return {
            "operator": operator,
            "shapes": argument_tensors(schedule.mod),
            **workload.reading,
        }

    def _scheduled(self, id: int, operator: int, sketch: int, choices: list[int]) -> Any:
        """Made anew where another worker applied it."""
        return self.schedules.pop(id, None) or self.workloads[operator].schedule(sketch, tuple(choices))


class Worker(Builder):
    """Runs what it compiles."""

    def __init__(self, target: dict[str, Any]) -> None:
        from workers.tvm_backend.timer import Timer

        super().__init__(target)
        self.timer = Timer(self.target, int(os.environ["TVM_NUM_THREADS"]))

    def load(self, workloads: str, evaluator: dict[str, Any], footprint: Sequence[int]) -> Answer:
        self.timer.load(evaluator, footprint)
        return super().load(workloads, evaluator, footprint)

    def begin(self, lately: list[float]) -> Answer:
        return self.timer.begin(lately)

    def compile(self, programs: list[dict[str, Any]]) -> Answer:
        from workers.tvm_backend.programs import compile_programs

        schedules = self.scheduled(programs)
        began = time.perf_counter()
        entries = compile_programs(schedules, self.target)
        for program, schedule, entry in zip(programs, schedules, entries, strict=True):
            self.timer.keep(program["id"], entry, **self.described(program["operator"], schedule))
        return {"seconds": time.perf_counter() - began}

    def run(self, **order: Any) -> Answer:
        return self.timer.run(**order)

    def drop(self) -> Answer:
        self.timer.drop()
        return super().drop()


class Exporter(Builder):
    """Makes libraries for a device elsewhere."""

    made = 0

    def load(self, workloads: str, evaluator: dict[str, Any], footprint: Sequence[int]) -> Answer:
        from workers.tvm_backend.linking import warm

        warm(self.target, Path(tempfile.gettempdir()))
        return super().load(workloads, evaluator, footprint)

    def compile(self, programs: list[dict[str, Any]]) -> Answer:
        from workers.tvm_backend.programs import NotLinked, export_programs

        schedules = self.scheduled(programs)
        began = time.perf_counter()
        self.made += 1
        path = Path(tempfile.gettempdir()) / f"programs-{os.getpid()}-{self.made}.so"
        try:
            names = export_programs(schedules, self.target, path)
        except NotLinked as error:
            path.unlink(missing_ok=True)
            return {"fault": str(error)[-300:]}
        told = [
            {"name": name, **self.described(program["operator"], schedule)}
            for name, program, schedule in zip(names, programs, schedules, strict=True)
        ]
        return {"seconds": time.perf_counter() - began, "library": str(path), "programs": told}


class Parent:
    """Makes workers of the process that it is in, which must have one thread alone: of others a fork has the locks only."""

    def __init__(self, connection: Connection, target: dict[str, Any], exports: bool = False) -> None:
        self.connection = connection
        self.worker: Builder = Exporter(target) if exports else Worker(target)
        self.verbs = BUILDERS if exports else (*BUILDERS, "run")
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
                serve(handed, self.worker, self.verbs)
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


def serve(
    connection: Connection, one: object, names: Iterable[str], silence: Callable[[], float] = lambda: 0.0
) -> None:
    """Answers orders until the other side closes. An order may say within how many seconds, after which this process ends; so
    it does when `silence` seconds, asked after each order, go by without another (0: there may be none for ever)."""
    verbs: dict[str, Callable[..., Answer]] = {name: getattr(one, name) for name in names}
    while True:
        try:
            order = json.loads(connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            return
        began = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, order.pop("within", 0.0))
        try:
            answer = verbs[order.pop("verb")](**order)
        except Exception as error:  # a failed build is an answer; TVM raises whatever its C++ throws
            kind, text = type(error).__name__, str(error).strip()
            answer = {"error": f"{kind}: {text[-300:]}", "taken": time.perf_counter() - began}
            if any(sign in f"{kind}: {text}" for sign in EXHAUSTED):
                answer["cause"] = "memory"
        signal.setitimer(signal.ITIMER_REAL, silence())
        connection.send_bytes(json.dumps(answer).encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--exports", action="store_true")
    arguments = parser.parse_args()
    target = json.loads(arguments.target)
    runtime.load(target)
    connection = Connection(arguments.fd)
    serve(connection, Parent(connection, target, arguments.exports), PARENTS)
    os._exit(0)


if __name__ == "__main__":
    main()
