"""Builds here and times on a device elsewhere, both at once."""

from __future__ import annotations

import base64
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from workers.engine.ports import Candidate, Outcome
from workers.engine.thrift import Thrift
from workers.messages.cores import usable_cores
from workers.sandbox.lock import MeasureLock
from workers.tvm_backend.members import Dead, Member, Task
from workers.tvm_backend.nursery import PoolError
from workers.tvm_backend.pool import ANSWER_TIMEOUT, Pool
from workers.tvm_backend.remote.line import BROKEN, DeviceGone, Line, call_again
from workers.tvm_backend.remote.sameness import check_same
from workers.tvm_backend.remote.timing import check_timing

BEGIN_TIMEOUT = 60.0
HOLD_TIMEOUT, HOLD_AGAIN = 600.0, 30.0
"""Seconds for another site's batch, or an archive's runs, on the device; the second with this machine's lock in hand, which
nobody should wait for long."""
Waiting = Callable[[AbstractContextManager[float]], AbstractContextManager[float]]


class DevicePool(Pool):
    """What was compiled goes to the device while the next is compiled; programs that are timed in turns wait for each other.

    A device that breaks off is called again. What it had in hand is run once more, and takes the blame when that breaks it
    off again: a program that crashes cannot be told from a cable.
    """

    def __init__(
        self,
        call: Callable[[], Line],
        target: dict[str, Any],
        threads: int,
        lock: MeasureLock,
        thrift: Thrift | None = None,
        plan: int | None = None,
        say: Callable[[str], None] = lambda text: None,
        waiting: Waiting = lambda turn: turn,
        name: str = "",
    ) -> None:
        """`call` reaches the device, whose the `threads` are, and the `name`, as in `check_same`. `say` is told what is the
        matter with it; `waiting` enters and leaves a turn for which others may have one wait. Raises DeviceGone,
        DeviceRefused."""
        self._call, self._say, self._waiting = call, say, waiting
        self._threads, self._target, self._name = threads, target, name
        self._line = call()
        self.caches: Sequence[int | None] = self._line.greeting["caches"]
        self._there = set[str]()
        """Libraries that the line has, by path: each is sent once, with the first run of one of its programs."""
        self._due = deque[Task]()
        self._best: dict[int, float] = {}
        self._begun: dict[str, Any] = {}
        super().__init__(target, usable_cores(), lock, thrift, plan, exports=True)

    def _loaded(self, evaluator: dict[str, Any], footprint: Sequence[int]) -> None:
        self._begun = {"target": self._target, "threads": self._threads, "evaluator": evaluator, "footprint": footprint}
        self._line.close()
        self._line = self._call()
        with self._waited(self._waiting(self._held())):
            self._begin()

    def measure(
        self, candidates: Sequence[Candidate], seen: set[tuple[int, str]], incumbents: dict[int, float]
    ) -> list[Outcome]:
        self._best = dict(incumbents)
        self._due.clear()
        self._there.clear()
        with self._waited(self._waiting(self._held())):
            try:
                return super().measure(candidates, seen, incumbents)
            finally:
                for path in {task.library for task in self.tasks if task.library}:
                    Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        self._line.connection.close()
        super().close()

    def _timing(self) -> AbstractContextManager[float]:
        return nullcontext(0.0)

    @contextmanager
    def _held(self) -> Iterator[float]:
        """The device, to ready it or for one batch; yields the seconds waited. Taken before the local lock: who has that waits
        for no device."""
        began = time.monotonic()
        try:
            self._line.ask("hold", HOLD_TIMEOUT)
        except DeviceGone:
            self._call_again(HOLD_TIMEOUT)
        try:
            yield time.monotonic() - began
        except BaseException:
            self._line.close()
            raise
        try:
            for verb in ("drop", "release"):
                self._line.send(verb, ANSWER_TIMEOUT)
                self._line.receive()
        except Dead:  # with its process the device is free, and the next batch calls again
            self._line.close()

    def _begin(self) -> None:
        """Readies the device for programs, with it in hand: this fills memory, which others' timings would feel."""
        found = self._line.ask("hardware", BEGIN_TIMEOUT, peak=False)["hardware"]
        check_same(found, self._begun["target"], self._begun["threads"], self._name)
        self._line.ask("begin", BEGIN_TIMEOUT, **self._begun)

    def _call_again(self, hold: float = HOLD_AGAIN) -> None:
        """A line as the one before it was, which holds the device within `hold` seconds."""
        broken = self._line
        broken.close()
        self._line = call_again(self._call, self._say)
        self._there.clear()
        self._line.ask("bury", ANSWER_TIMEOUT, **broken.greeting["process"])
        self._line.ask("hold", hold)
        self._begin()

    def _advance(self, member: Member, answer: dict[str, Any], seen: set[tuple[int, str]]) -> list[Task]:
        if fault := answer.get("fault"):
            raise PoolError(f"programs cannot be linked here: {fault}")
        left = super()._advance(member, answer, seen)
        if "seconds" in answer:
            for task, program in zip(member.hand, answer["programs"], strict=True):
                task.program, task.library = {**program, "id": task.id}, answer["library"]
                task.member = None
                if not task.candidate.in_turns:
                    self._due.append(task)
        return left

    def _run(self, tasks: Sequence[Task], incumbents: dict[int, float]) -> None:
        while self._due or self._line.hand:
            self._answered([])
        super()._run([task for task in tasks if task.outcome is None], self._best)

    def _answered(self, busy: list[Member]) -> list[Member]:
        """The builders among them; the device is served beside."""
        if self._due and not self._line.hand:
            task = self._due.popleft()
            self._order(task, self._best.get(task.candidate.operator), last=True)
        answered = super()._answered([*busy, self._line] if self._line.hand else busy)
        if self._line in answered:
            answered.remove(self._line)
            (task,) = self._line.hand
            if answer := self._heard(task):
                self._ended(task, [answer], self._best)
            elif task.outcome is None:
                self._due.appendleft(task)
        return answered

    def _noted(self, answer: dict[str, Any]) -> None:
        """Nothing: they are the device's, and while it waits for a good one others are compiled."""

    def _time(self, task: Task, incumbent: float | None, last: bool = True) -> dict[str, Any] | None:
        answer = None
        while task.outcome is None and answer is None:
            self._order(task, incumbent, last)
            answer = self._heard(task)
        return answer

    def _order(self, task: Task, incumbent: float | None, last: bool) -> None:
        task.member = self._line
        self._send_run(self._line, task, incumbent, last, library=self._unsent(task.library))

    def _unsent(self, path: str) -> dict[str, Any] | None:
        """A library with those of its programs that are still to be timed; None where the line has it."""
        if path in self._there:
            return None
        self._there.add(path)
        left = [task.program for task in self.tasks if task.library == path and task.outcome is None]
        data = zlib.compress(Path(path).read_bytes(), 1)  # to a fifth
        return {"data": base64.b64encode(data).decode(), "programs": left}

    def _heard(self, task: Task) -> dict[str, Any] | None:
        """The device's answer; None where the task came to its end, or is to be run once more."""
        line = self._line
        line.hand = []
        try:
            answer = line.receive()
        except Dead as dead:
            taken = time.monotonic() - line.ordered
            self._call_again()
            if dead.cause in ("crash", BROKEN) and not task.spared:
                task.spared = True
            else:
                task.end(cause="crash" if dead.cause == BROKEN else dead.cause, error=str(dead), measure_seconds=taken)
            return None
        if fault := answer.get("fault"):
            raise DeviceGone(f"the device cannot take programs: {fault}")
        check_timing(answer)
        if "seconds" not in answer:
            self._there.discard(task.library)  # whether it was loaded is not told
        return self._ran(task, answer)
