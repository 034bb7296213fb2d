"""The process that workers are made of: it loads TVM and reads the operators once, and every worker is a fork of it.

A worker of its own making takes two to four seconds to load TVM and read the operators, and 240 MB; a fork a tenth of a
second, and the memory that it writes to.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from pathlib import Path
from typing import Any

from workers.messages.machine import memory
from workers.sandbox.spawn import Limits, spawn
from workers.tvm_backend.members import Dead, Member
from workers.tvm_backend.runtime import environment

START_TIMEOUT = 120.0
FORK_TIMEOUT = 10.0
"""Seconds for what takes milliseconds on a machine that does not swap."""
LATELY = 256
"""Looks at the machine's moment (`Moment`), of which the quickest quarter says what is usual: a machine that became slower for
good is waited for a second."""
SHARE = 0.5
"""Of the machine's memory that one worker may reserve: a candidate that wants more is an outcome, the run goes on."""
LEAST = 6 * 2**30
"""Bytes; libraries and threads' stacks reserve some of it without using it."""


def nothing() -> None:
    """What is done meanwhile where there is nothing to do."""


def address_space() -> int:
    """Bytes that a process which runs programs may reserve."""
    return max(LEAST, int(SHARE * memory()))


class PoolError(RuntimeError):
    """The workers cannot be started; the text says why and what to do. A machine that swaps may do it the next time."""

    passing = True


class Nursery:
    """Starts at once, and anew where it died; its workers die with it. Not thread-safe; owned by one pool."""

    def __init__(self, target: dict[str, Any], threads: int, exports: bool = False) -> None:
        """`target` as TVM is given it; programs run on `threads`, or, where its workers make libraries only (`exports`), on a
        device elsewhere."""
        self._target, self._threads, self.exports = target, threads, exports
        self._order: dict[str, Any] = {}
        self.lately = deque[float](maxlen=LATELY)
        """What workers saw; a new one is told, so that a bad moment is not the usual to it."""
        self._start()

    def load(
        self,
        workloads: Path,
        evaluator: dict[str, Any],
        footprint: Sequence[int],
        meanwhile: Callable[[], object] = nothing,
    ) -> None:
        """What workers are made with from now on; `footprint` as `Timer.load` takes it. `meanwhile` is called while it
        reads. PoolError when it cannot be read."""
        self._order = {"workloads": str(workloads), "evaluator": evaluator, "footprint": footprint}
        if not self._revived(meanwhile):
            self._load(meanwhile)

    def workers(self, count: int) -> list[Member]:
        """They take orders at once. PoolError when they cannot be had."""
        self._revived()
        made = [self._fork() for _ in range(count)]
        for worker in made:
            worker.send("begin", START_TIMEOUT, lately=list(self.lately))
        for worker in made:
            _answered(worker)
        return made

    def close(self) -> None:
        """Ends it, and its workers."""
        self._process.close()

    def _revived(self, meanwhile: Callable[[], object] = nothing) -> bool:
        """Whether it had died; then it is there anew, and has loaded."""
        if not self._spawned.exited():
            return False
        self.close()
        self._start()
        self._load(meanwhile)
        return True

    def _load(self, meanwhile: Callable[[], object]) -> None:
        self._process.send("load", START_TIMEOUT, **self._order)
        try:
            meanwhile()
        except BaseException:
            self._process.end()  # its answer would be taken for another's
            raise
        _answered(self._process)

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        handed = ["--fd", str(theirs.fileno()), "--target", json.dumps(self._target)]
        if self.exports:
            handed.append("--exports")
        with theirs:
            self._spawned = spawn(
                [sys.executable, "-m", "workers.tvm_backend.worker", *handed],
                limits=Limits(address_space=address_space()),
                env=environment(self._threads),
                pass_fds=(theirs.fileno(),),
            )
        self._process = Member(self._spawned.pid, Connection(ours.detach()), partial(self._spawned.end, 0.0))

    def _fork(self) -> Member:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._process.send("fork", FORK_TIMEOUT)
            with suppress(BrokenPipeError, ConnectionResetError):  # seen again when the answer is read
                send_handle(self._process.connection, theirs.fileno(), None)
            pid = _answered(self._process)["pid"]
            return Member(pid, Connection(ours.detach()), partial(self._end, pid), self._spawned)

    def _end(self, pid: int) -> int:
        """Its exit status. A nursery that is late goes, with all workers: its answer would be taken for another's."""
        self._process.send("end", FORK_TIMEOUT, pid=pid)
        try:
            return int(self._process.receive()["status"])
        except Dead:
            self._process.end()
            return -signal.SIGKILL


def _answered(member: Member) -> dict[str, Any]:
    try:
        answer = member.receive()
    except Dead as dead:
        answer = {"error": f"no answer in {member.timeout:g} s" if dead.cause == "timeout" else str(dead)}
    if "error" in answer:
        raise PoolError(f"a measuring worker did not start: {answer['error']}; run 'manage.py doctor'")
    return answer
