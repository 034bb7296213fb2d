"""The processes that compile and run candidates, and what happens when one of them dies.

One batch: every candidate is applied and, when new, compiled on whichever worker is free; then all that compiled are
timed one after the other, repetitions in turns, while the other workers rest. A worker that dies or is late takes the
blame for the candidate it had in hand; what else it had compiled is compiled again elsewhere.
"""

from __future__ import annotations

import json
import math
import signal
import socket
import statistics
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from workers.engine.evaluator.estimate import LONGEST_TIMING, TURNS, of_turns
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.engine.thrift import Thrift
from workers.messages.causes import DUPLICATE, LARGE
from workers.sandbox.lock import MeasureLock
from workers.sandbox.memory import memory
from workers.sandbox.spawn import Limits, Process, spawn
from workers.tvm_backend.runtime import environment

# Most candidates compile in 0.1 s; one that takes forty times as long is code unrolled beyond any instruction cache.
COMPILE_TIMEOUT = 4.0
LEAST_TIMEOUT = 2.5
"""What another worker in its place takes, with what is compiled anew: of SqueezeNet's two minutes 15 s went for six programs
that were given up after one, and would have taken less than two."""
PATIENCE = 10.0
"""Times the median of what compiled lately. In a run of ResNet-18 one program of a hundred took over seven medians, and none
of those that were faster than what was known more than one and a half."""
OWN = 4.0
"""Times the quickest of the operator's own."""
LATELY = 200
"""Programs."""
KNOWN = 20
"""Programs without which their median says little."""
RUN_TIMEOUT = LONGEST_TIMING + 2.0
START_TIMEOUT = 120.0
QUIET = 0.3
"""Seconds that a program's timing may wait for a good moment of the machine (`Moment`), which RUN_TIMEOUT has room for."""
QUIET_SHARE = 0.2
"""Of all seconds that may be lost so: on a machine that is always busy no moment is good, and waiting is of no use."""

SHARE = 0.5
"""Of the machine's memory that one worker may reserve: a candidate that wants more is an outcome, the run goes on."""
LEAST = 6 * 2**30
"""Bytes; libraries and threads' stacks reserve some of it without using it."""


class PoolError(RuntimeError):
    """The workers cannot be started; the text says why and what to do. A machine that swaps may do it the next time."""

    passing = True


class Dead(Exception):
    """A worker died or was late; `cause` is an outcome's cause."""

    def __init__(self, cause: str, error: str) -> None:
        super().__init__(error)
        self.cause = cause


def describe_end(process: Process) -> str:
    """Why a process is gone, in words."""
    code = process.end(grace=0.0)
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"left with status {code}"


@dataclass
class Member:
    """One worker process and the order it works on."""

    process: Process
    connection: Connection
    task: Task | None = None
    timeout: float = float("inf")
    late: float = float("inf")

    def send(self, verb: str, timeout: float, **arguments: Any) -> None:
        self.timeout, self.late = timeout, time.monotonic() + timeout
        try:
            self.connection.send_bytes(json.dumps({"verb": verb, **arguments}).encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # seen again, with its cause, when the answer is read

    def receive(self) -> dict[str, Any]:
        """The answer; raises Dead when there will be none, or none that a worker should outlive."""
        left = self.late - time.monotonic()
        try:
            if not self.connection.poll(max(left, 0)):
                raise Dead("timeout", f"the program did not finish within {self.timeout:.3g} s")
            answer = dict(json.loads(self.connection.recv_bytes()))
        except (EOFError, ConnectionResetError):
            raise Dead("crash", f"the worker died: {describe_end(self.process)}") from None
        if answer.get("cause") == "memory":  # what is left of it may not do for the next candidate either
            raise Dead("memory", answer["error"])
        return answer


@dataclass
class Task:
    """A candidate on its way through the pool."""

    id: int
    candidate: Candidate
    choices: tuple[int, ...] | None = None
    identity: str = ""
    build_seconds: float = 0.0
    member: Member | None = field(default=None, repr=False)
    outcome: Outcome | None = None
    size: float = 0.0
    times: tuple[float, ...] = ()

    def timed(self, answers: Sequence[dict[str, Any]]) -> None:
        """Ends with what workers answered to "run", turn by turn."""
        seconds, spread = of_turns([(answer["seconds"], answer["spread"]) for answer in answers])
        self.end(
            seconds,
            spread=spread,
            runs=sum(answer["runs"] for answer in answers),
            stopped=answers[-1]["stopped"],
            measure_seconds=sum(answer["taken"] for answer in answers),
        )
        self.times = tuple(answers[0]["times"])

    def end(self, seconds: float | None = None, **fields: Any) -> None:
        configuration = self.candidate.configuration
        if self.choices is not None:
            configuration = Configuration(configuration.sketch, self.choices)
        self.outcome = Outcome(
            self.candidate, configuration, self.identity, seconds, build_seconds=self.build_seconds, **fields
        )


class Pool:
    """Compiles on a worker a thread, but on no more than the candidates of a `plan`, and runs on `threads` threads. Its
    workers load TVM while the caller does: make it first. One starts when the caller has loaded it (`fill`): two on a core
    take twice as long. Not thread-safe; owned by one backend.

    `spent` are its seconds by account. What is not worth compiling to `thrift` ends as "large".
    """

    def __init__(
        self,
        target: dict[str, Any],
        threads: int,
        lock: MeasureLock,
        thrift: Thrift | None = None,
        plan: int | None = None,
    ) -> None:
        """`target` as TVM is given it. A worker takes 190 MB, and up to 192 to read weights from and to write to: a machine of
        many threads need not have one for each."""
        self.target, self.threads, self.lock = target, threads, lock
        self.thrift = thrift or Thrift(math.inf)
        self.spent: dict[str, float] = defaultdict(float)
        self.made, self.lost = time.monotonic(), 0.0
        self.builds: deque[float] = deque(maxlen=LATELY)
        self.compiled = dict[int, float]()
        self.order: dict[str, Any] | None = None
        self.tasks: list[Task] = []
        self._size = min(threads, plan or threads)
        self.members: list[Member] = [self._start() for _ in range(max(1, self._size - 1))]

    def fill(self) -> None:
        """Starts the last worker."""
        self.members += [self._start() for _ in range(self._size - len(self.members))]

    def load(self, workloads: Path, evaluator: dict[str, Any], footprint: int) -> None:
        """Gives every worker the operators; `footprint` as `Arguments` takes it. PoolError when one cannot take them."""
        self.order = {
            "workloads": str(workloads),
            "target": self.target,
            "evaluator": evaluator,
            "footprint": footprint,
        }
        with self.lock.shared() as waited:  # they write memory, which others' timings would feel
            self.spent["wait"] += waited
            for member in self.members:
                member.send("load", START_TIMEOUT, **self.order)
            for member in self.members:
                self._loaded(member)

    def measure(
        self, candidates: Sequence[Candidate], seen: set[tuple[int, str]], incumbents: dict[int, float]
    ) -> list[Outcome]:
        """One outcome a candidate, in order. `seen` (operator, identity) is extended by what is tried for the first time."""
        tasks = self.tasks = [Task(number, candidate) for number, candidate in enumerate(candidates)]
        self._ask_all("drop")
        while open_tasks := [task for task in tasks if task.outcome is None]:
            with self.lock.shared() as waited:
                self.spent["wait"] += waited
                began = time.monotonic()
                self._compile(open_tasks, seen)
                self.spent["build"] += time.monotonic() - began
            with self.lock.exclusive() as waited:
                self.spent["wait"] += waited
                began = time.monotonic()
                self._run([task for task in open_tasks if task.outcome is None], incumbents)
                self.spent["measure"] += time.monotonic() - began
        return [task.outcome for task in tasks if task.outcome is not None]

    def patience(self, operator: int) -> float:
        """Seconds that this operator's next program may take to compile: a late one ends its worker, and what that had
        compiled. COMPILE_TIMEOUT until one of its programs compiled, and where everything is worth it."""
        if not self.thrift.limits or operator not in self.compiled or len(self.builds) < KNOWN:
            return COMPILE_TIMEOUT
        usual = max(PATIENCE * statistics.median(self.builds), OWN * self.compiled[operator])
        return min(COMPILE_TIMEOUT, max(LEAST_TIMEOUT, usual))

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is learned of compiling meanwhile is forgotten: it is of operators that may not be tuned."""
        kept = self.thrift, self.builds, self.compiled
        self.thrift, self.builds, self.compiled = Thrift(math.inf), deque(maxlen=LATELY), {}
        try:
            yield
        finally:
            self.thrift, self.builds, self.compiled = kept

    def close(self) -> None:
        for member in self.members:
            member.connection.close()
            member.process.end(grace=0.0)
        self.members = []

    def _compile(self, tasks: Iterable[Task], seen: set[tuple[int, str]]) -> None:
        queue = deque(task for task in tasks if task.member is None)
        idle: list[Member] = list(self.members)
        busy: list[Member] = []
        while queue or busy:
            while queue and idle:
                member = idle.pop()
                member.task = queue.popleft()
                configuration = member.task.candidate.configuration
                member.send(
                    "apply",
                    COMPILE_TIMEOUT,
                    id=member.task.id,
                    operator=member.task.candidate.operator,
                    sketch=configuration.sketch,
                    choices=list(configuration.choices),
                )
                busy.append(member)
            for member in self._answered(busy):
                try:
                    if self._advance(member, member.receive(), seen):
                        busy.remove(member)
                        idle.append(member)
                except Dead as dead:
                    busy.remove(member)
                    queue.extend(self._bury(member, dead))
                    idle.append(self._replace(member))

    def _advance(self, member: Member, answer: dict[str, Any], seen: set[tuple[int, str]]) -> bool:
        """Takes a worker's answer to "apply" or "compile"; True when the worker is free again."""
        task = member.task
        assert task is not None
        if "seconds" in answer:
            task.build_seconds = answer["seconds"]
            task.member = member
            operator = task.candidate.operator
            self.builds.append(task.build_seconds)
            self.compiled[operator] = min(task.build_seconds, self.compiled.get(operator, math.inf))
            self.thrift.compiled(operator, task.size, task.build_seconds)
            return True
        if "identity" not in answer:
            cause = "invalid" if "invalid" in answer else "build"
            task.end(cause=cause, error=answer.get("invalid") or answer.get("error", ""))
            return True
        first = not task.identity
        task.identity = answer["identity"]
        task.choices = None if answer["choices"] is None else tuple(answer["choices"])
        task.size = answer["size"]
        key = (task.candidate.operator, task.identity)
        if first and task.candidate.round == 0:
            unbuilt = DUPLICATE if key in seen else "" if self.thrift.worth(key[0], task.size) else LARGE
            if unbuilt:
                task.end(cause=unbuilt)
                return True
        seen.add(key)
        # A repetition compiled once: what took long then is no worse for it.
        member.send("compile", COMPILE_TIMEOUT if task.candidate.round else self.patience(key[0]), id=task.id)
        return False

    def _run(self, tasks: Sequence[Task], incumbents: dict[int, float]) -> None:
        best = dict(incumbents)
        for task in (task for task in tasks if task.candidate.round == 0):
            if answer := self._time(task, best.get(task.candidate.operator)):
                self._ended(task, [answer], best)
        again: dict[int, list[Task]] = defaultdict(list)
        for task in (task for task in tasks if task.candidate.round > 0):
            again[task.candidate.operator].append(task)
        for rivals in again.values():
            self._in_turns(rivals, best)

    def _in_turns(self, rivals: Sequence[Task], best: dict[int, float]) -> None:
        """Repetitions of one operator's programs, timed to the end: the point of them is a better figure, not a verdict."""
        turns: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for turn in range(1, TURNS + 1):
            for task in rivals:
                if task.outcome is None and (answer := self._time(task, None, last=turn == TURNS)):
                    turns[task.id].append(answer)
        for task in rivals:
            if task.outcome is None and task.member is not None:
                self._ended(task, turns[task.id], best)

    def _ended(self, task: Task, answers: Sequence[dict[str, Any]], best: dict[int, float]) -> None:
        task.timed(answers)
        operator, seconds = task.candidate.operator, task.outcome.seconds if task.outcome else None
        if seconds is not None and seconds < best.get(operator, math.inf):
            best[operator] = seconds
            self.thrift.fastest(operator, task.size)

    def _time(self, task: Task, incumbent: float | None, last: bool = True) -> dict[str, Any] | None:
        """A worker's answer to "run"; None where the task came to its end, or its program died with its worker and is compiled
        again in the next turn. After the `last` time the worker forgets the program."""
        member = task.member
        if member is None:
            return None
        member.task = task
        patience = min(QUIET, QUIET_SHARE * (time.monotonic() - self.made) - self.lost)
        member.send("run", RUN_TIMEOUT, id=task.id, incumbent=incumbent, patience=patience, last=last)
        try:
            answer = member.receive()
        except Dead as dead:
            self._bury(member, dead)
            self._replace(member)
            return None
        if "seconds" not in answer:
            task.end(cause="run", error=answer.get("error", ""))
            return None
        self.lost += answer["waited"]
        self.spent["wait"] += answer["waited"]
        self.spent["measure"] -= answer["waited"]
        return answer

    def _bury(self, member: Member, dead: Dead) -> list[Task]:
        """Blames the task in hand; gives back what else was lost with the worker."""
        if member.task is not None:
            member.task.end(cause=dead.cause, error=str(dead))
        lost = [task for task in self.tasks if task.member is member and task.outcome is None]
        for task in lost:
            task.member = None
        return lost

    def _replace(self, member: Member) -> Member:
        member.process.end(grace=0.0)
        member.connection.close()
        fresh = self._start()
        self.members[self.members.index(member)] = fresh
        fresh.send("load", START_TIMEOUT, **(self.order or {}))
        self._loaded(fresh)
        return fresh

    def _answered(self, busy: list[Member]) -> list[Member]:
        """Members with an answer, or whose time is over."""
        now = time.monotonic()
        ready = wait([member.connection for member in busy], timeout=max(0.0, min(m.late for m in busy) - now))
        return [m for m in busy if m.connection in ready or m.late <= time.monotonic()]

    def _ask_all(self, verb: str) -> None:
        for member in list(self.members):
            member.task = None
            member.send(verb, COMPILE_TIMEOUT)
        for member in list(self.members):
            try:
                member.receive()
            except Dead:
                self._replace(member)

    def _start(self) -> Member:
        ours, theirs = socket.socketpair()
        process = spawn(
            [
                sys.executable,
                "-m",
                "workers.tvm_backend.worker",
                "--fd",
                str(theirs.fileno()),
                "--target",
                json.dumps(self.target),
            ],
            limits=Limits(address_space=max(LEAST, int(SHARE * memory()))),
            env=environment(self.threads),
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        return Member(process, Connection(ours.detach()))

    def _loaded(self, member: Member) -> None:
        try:
            answer = member.receive()
        except Dead as dead:
            raise PoolError(f"a measuring worker did not start: {dead}; run 'manage.py doctor'") from None
        if "operators" not in answer:
            raise PoolError(f"a measuring worker could not load the operators: {answer.get('error')}")
