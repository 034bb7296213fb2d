"""The processes that compile and run candidates, and what happens when one of them dies.

One batch: every candidate is applied, and what is new is compiled on whichever worker is free, some in one module
(`company`); then all that compiled are timed one after the other, repetitions in turns, while the other workers rest. A
worker that dies or is late takes the blame for the candidate it had in hand; of several each is compiled again alone, and
what else it had compiled again elsewhere. One that died with what workers are made of takes none, but for a candidate to
which that happens again.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from workers.engine.compile_limit import CompileLimit
from workers.engine.evaluator.estimate import LONGEST_TIMING, TURNS
from workers.engine.ports import Candidate, Outcome
from workers.engine.thrift import Thrift
from workers.messages.causes import DUPLICATE, INVALID, LARGE
from workers.messages.machine import memory
from workers.sandbox.lock import MeasureLock
from workers.tvm_backend.company import company, shared
from workers.tvm_backend.members import Dead, Member, Task
from workers.tvm_backend.nursery import Nursery, nothing

ANSWER_TIMEOUT = 10.0
"""Seconds for what takes milliseconds, and on a machine that others keep busy now and then seconds."""
RUN_TIMEOUT = LONGEST_TIMING + 2.0
OWN = 200 * 2**20
"""Bytes of a worker beside what it is given to time."""
SHARE = 0.5
"""Of the machine's memory that workers may come to hold together."""
QUIET = 0.3
"""Seconds that a program's timing may wait for a good moment of the machine (`Moment`), which RUN_TIMEOUT has room for."""
SEEN = 16
"""Looks at the machine's moment that a worker is told of, for it may have taken none."""
QUIET_SHARE = 0.2
"""Of all seconds that may be lost so: on a machine that is always busy no moment is good, and waiting is of no use."""


class Pool:
    """Compiles on a worker a thread, but on no more than the candidates of a `plan`, and runs on `threads` threads. TVM is
    loaded for its workers while the caller loads it: make it first. Not thread-safe; owned by one backend.

    `spent` are its seconds by account. What is not worth compiling to `thrift` ends as "large".
    """

    def __init__(
        self,
        target: dict[str, Any],
        threads: int,
        lock: MeasureLock,
        thrift: Thrift | None = None,
        plan: int | None = None,
        exports: bool = False,
    ) -> None:
        """`target` as TVM is given it. A worker takes up to 192 MB to read weights from and to write to: a machine of many
        threads need not have one for each. `exports` as `Nursery` takes it."""
        self.lock = lock
        self.thrift = thrift or Thrift(math.inf)
        self.spent: dict[str, float] = defaultdict(float)
        self.made, self.lost = time.monotonic(), 0.0
        self.limit = CompileLimit(gpu=target["kind"] == "cuda")
        self.tasks: list[Task] = []
        self.members: list[Member] = []
        self._size = min(threads, plan or threads)
        self._nursery = Nursery(target, threads, exports)

    def load(
        self,
        workloads: Path,
        evaluator: dict[str, Any],
        footprint: Sequence[int],
        largest: int = 0,
        meanwhile: Callable[[], object] = nothing,
    ) -> None:
        """Workers that know the operators, fewer than threads where memory is short; `footprint` as `Timer.load` takes it,
        `largest` as `most_held`. `meanwhile` is called while they are read. PoolError when they cannot be had."""
        # They bring TVM, which is to be loaded by `runtime.load` alone.
        from workers.tvm_backend.arguments import Footprint, most_held

        with self._waited(self.lock.shared()):  # they write memory, which others' timings would feel
            for member in self.members:
                member.close()
            self._nursery.load(workloads, evaluator, footprint, meanwhile)
            held = OWN + (0 if self._nursery.exports else most_held(Footprint(*footprint), largest))
            self.members = self._nursery.workers(max(1, min(self._size, int(SHARE * memory() / held))))
        self._loaded(evaluator, footprint)

    @contextmanager
    def _waited(self, turn: AbstractContextManager[float]) -> Iterator[None]:
        """In a `turn`, which gives the seconds that it was waited for."""
        with turn as waited:
            self.spent["wait"] += waited
            yield

    def _loaded(self, evaluator: dict[str, Any], footprint: Sequence[int]) -> None:
        """The workers are there; others may time and build meanwhile."""

    def measure(
        self, candidates: Sequence[Candidate], seen: set[tuple[int, str]], incumbents: dict[int, float]
    ) -> list[Outcome]:
        """One outcome a candidate, in order. `seen` (operator, identity) is extended by what is tried for the first time."""
        tasks = self.tasks = [Task(number, candidate) for number, candidate in enumerate(candidates)]
        with self._waited(self.lock.shared()):  # who died in the meantime is replaced
            self._ask_all("drop")
        while open_tasks := [task for task in tasks if task.outcome is None]:
            with self._waited(self.lock.shared()):
                began = time.monotonic()
                self._compile(open_tasks, seen)
                self.spent["build"] += time.monotonic() - began
            with self._waited(self._timing()):
                began = time.monotonic()
                self._run([task for task in open_tasks if task.outcome is None], incumbents)
                self.spent["measure"] += time.monotonic() - began
        return [task.outcome for task in tasks if task.outcome is not None]

    def _timing(self) -> AbstractContextManager[float]:
        """What is held while programs run: nothing else may disturb them. It gives the seconds waited for it."""
        return self.lock.exclusive()

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is learned of compiling meanwhile is forgotten: it is of operators that may not be tuned."""
        kept = self.thrift, self.limit
        self.thrift, self.limit = Thrift(math.inf), CompileLimit(self.limit.gpu)
        try:
            yield
        finally:
            self.thrift, self.limit = kept

    def close(self) -> None:
        for member in self.members:
            member.connection.close()
        self.members = []
        self._nursery.close()

    def _compile(self, tasks: Iterable[Task], seen: set[tuple[int, str]]) -> None:
        unknown, ready = deque[Task](), list[Task]()
        idle: list[Member] = list(self.members)
        busy: list[Member] = []

        def queue(waiting: Iterable[Task]) -> None:
            for task in waiting:
                (ready if task.identity else unknown).append(task)

        queue(task for task in tasks if task.member is None)
        while unknown or ready or busy:
            while (unknown or ready) and idle:
                member = idle.pop()
                if member.orphaned or member.ended:  # that is no fault of what it would be given
                    queue(self._fallen(member))
                    member = self._replace(member)
                if unknown:
                    self._give(member, "apply", [unknown.popleft()])
                else:
                    group = company(ready, member, len(self.members), self.thrift)
                    ready = [task for task in ready if task not in group]
                    group = [task for task in group if self._worth(task, seen)]
                    if not group:
                        idle.append(member)
                        continue
                    self._give(member, "compile", group)
                busy.append(member)
            for member in self._answered(busy):
                busy.remove(member)
                try:
                    queue(self._advance(member, member.receive(), seen))
                except Dead as dead:
                    queue(self._bury(member, dead))
                    member = self._replace(member)
                idle.append(member)

    def _give(self, member: Member, verb: str, hand: list[Task]) -> None:
        member.hand = hand
        programs = [task.order for task in hand]
        if verb == "apply":
            member.send(verb, ANSWER_TIMEOUT, **programs[0])
            return
        # A repetition compiled once: what took long then is no worse for it.
        hurried = self.thrift.limits and all(task.candidate.round == 0 for task in hand)
        operators = [task.candidate.operator for task in hand]
        member.send(verb, self.limit.together(operators) if hurried else self.limit.most * len(hand), programs=programs)

    def _worth(self, task: Task, seen: set[tuple[int, str]]) -> bool:
        """Asked when its turn has come: what is compiled before it has been paid for then. What was compiled already and is
        lost was worth it."""
        operator = task.candidate.operator
        if task.candidate.round or task.build_seconds or self.thrift.worth(operator, task.size):
            return True
        seen.discard((operator, task.identity))
        task.end(cause=LARGE)
        return False

    def _advance(self, member: Member, answer: dict[str, Any], seen: set[tuple[int, str]]) -> list[Task]:
        """Takes a worker's answer to "apply" or "compile"; what is to be compiled now."""
        hand = member.hand
        if "seconds" in answer:
            alike = len({task.candidate.operator for task in hand}) == 1
            for task, share in zip(hand, shared(answer["seconds"], hand), strict=True):
                task.member = member
                # Of operators side by side nobody knows which took how long, and a limit must not be too low.
                self.limit.took(task.candidate.operator, share if alike else answer["seconds"])
                self._built(task, share)
            return []
        if len(hand) > 1:
            return _alone(hand)
        (task,) = hand
        if "identity" not in answer:
            if task.identity:
                self._built(task, answer.get("taken", 0.0))
            cause = INVALID if "invalid" in answer else "build"
            task.end(cause=cause, error=answer.get("invalid") or answer.get("error", ""))
            return []
        task.applied(answer, member)
        key = (task.candidate.operator, task.identity)
        if task.candidate.round == 0 and key in seen:
            task.end(cause=DUPLICATE)
            return []
        seen.add(key)
        return [task]

    def _built(self, task: Task, seconds: float) -> None:
        """Whether or not anything came of it."""
        task.build_seconds = seconds
        self.thrift.compiled(task.candidate.operator, task.size, seconds)

    def _run(self, tasks: Sequence[Task], incumbents: dict[int, float]) -> None:
        best = dict(incumbents)
        for task in (task for task in tasks if not task.candidate.in_turns):
            if answer := self._time(task, best.get(task.candidate.operator)):
                self._ended(task, [answer], best)
        again: dict[int, list[Task]] = defaultdict(list)
        for task in (task for task in tasks if task.candidate.in_turns):
            again[task.candidate.operator].append(task)
        for rivals in again.values():
            self._in_turns(rivals, best)

    def _in_turns(self, rivals: Sequence[Task], best: dict[int, float]) -> None:
        """Repetitions of one operator's programs, and what earlier runs know of it (`Candidate.in_turns`)."""
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
        if member.orphaned or member.ended:  # that is no fault of this task
            self._fallen(member)
            self._replace(member)
            return None
        self._send_run(member, task, incumbent, last, lately=list(self._nursery.lately)[-SEEN:])
        try:
            answer = member.receive()
        except Dead as dead:
            self._bury(member, dead)
            self._replace(member)
            return None
        return self._ran(task, answer)

    def _send_run(self, member: Member, task: Task, incumbent: float | None, last: bool, **more: Any) -> None:
        member.hand = [task]
        patience = min(QUIET, QUIET_SHARE * (time.monotonic() - self.made) - self.lost)
        member.send("run", RUN_TIMEOUT, id=task.id, incumbent=incumbent, patience=patience, last=last, **more)

    def _ran(self, task: Task, answer: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to "run"; None where the task came to its end with it."""
        if "seconds" not in answer:
            task.end(cause="run", error=answer.get("error", ""), measure_seconds=answer.get("taken", 0.0))
            return None
        self.lost += answer["waited"]
        self._noted(answer)
        return answer

    def _noted(self, answer: dict[str, Any]) -> None:
        """What it says of the machine's moments."""
        for idle in (answer["rested"], answer["waited"]):
            self.spent["wait"] += idle
            self.spent["measure"] -= idle
        self._nursery.lately.extend(answer["looks"])

    def _bury(self, member: Member, dead: Dead) -> list[Task]:
        """Blames the task in hand where it may be its fault; gives back what else was lost with the worker."""
        hand, again = member.hand, list[Task]()
        if dead.cause == "crash" and member.orphaned and not any(task.spared for task in hand):
            again = hand
            for task in again:
                task.spared = True
        elif len(hand) > 1:
            again = _alone(hand)
        else:
            for task in hand:
                self._blame(task, dead, time.monotonic() - member.ordered)
        return [*(task for task in again if task.member is None), *self._lost(member)]

    def _lost(self, member: Member) -> list[Task]:
        """What was compiled there, which is to be compiled again."""
        lost = [task for task in self.tasks if task.member is member and task.outcome is None]
        for task in lost:
            task.member = None
        return lost

    def _fallen(self, member: Member) -> list[Task]:
        """What was compiled in one that ended with nothing in hand, and is to be compiled again: once, for a machine that ends
        them again and again would never come to the end of a batch."""
        lost = self._lost(member)
        for task in lost if not member.orphaned else ():
            if task.spared:
                task.end(cause="crash", error=f"{member.gone()}, once more with nothing to do")
            task.spared = True
        return [task for task in lost if task.outcome is None]

    def _blame(self, task: Task, dead: Dead, taken: float) -> None:
        if task.identity and task.member is None:
            self._built(task, taken)
        measured = {"measure_seconds": taken} if task.member is not None else {}
        task.end(cause=dead.cause, error=str(dead), **measured)

    def _replace(self, member: Member) -> Member:
        member.close()
        (fresh,) = self._nursery.workers(1)
        self.members[self.members.index(member)] = fresh
        return fresh

    def _answered(self, busy: list[Member]) -> list[Member]:
        """Members with an answer, or whose time is over."""
        if not busy:
            return []
        now = time.monotonic()
        ready = wait([member.connection for member in busy], timeout=max(0.0, min(m.late for m in busy) - now))
        return [m for m in busy if m.connection in ready or m.late <= time.monotonic()]

    def _ask_all(self, verb: str) -> None:
        for member in list(self.members):
            member.hand = []
            member.send(verb, ANSWER_TIMEOUT)
        for member in list(self.members):
            try:
                member.receive()
            except Dead:
                self._replace(member)


def _alone(tasks: list[Task]) -> list[Task]:
    """What they took in company is on nobody's account."""
    for task in tasks:
        task.alone = True
    return tasks
