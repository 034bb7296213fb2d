"""A worker process, and the candidate it has in hand."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from workers.engine.evaluator.estimate import of_turns
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.sandbox.memory import memory
from workers.sandbox.spawn import Limits, Process, spawn
from workers.tvm_backend.runtime import environment

SHARE = 0.5
"""Of the machine's memory that one worker may reserve: a candidate that wants more is an outcome, the run goes on."""
LEAST = 6 * 2**30
"""Bytes; libraries and threads' stacks reserve some of it without using it."""


class Dead(Exception):
    """A worker died or was late; `cause` is an outcome's cause."""

    def __init__(self, cause: str, error: str) -> None:
        super().__init__(error)
        self.cause = cause


def describe_end(process: Process) -> str:
    """Why a process is gone, in words."""
    code = process.end(grace=0.0)
    if code >= 0:
        return f"left with status {code}"
    with suppress(ValueError):  # real-time signals have no names
        return f"ended by {signal.Signals(-code).name}"
    return f"ended by signal {-code}"


@dataclass
class Member:
    """One worker process and the order it works on."""

    process: Process
    connection: Connection
    task: Task | None = None
    timeout: float = float("inf")
    ordered: float = 0.0

    @property
    def late(self) -> float:
        """When it will be."""
        return self.ordered + self.timeout

    def send(self, verb: str, timeout: float, **arguments: Any) -> None:
        self.timeout, self.ordered = timeout, time.monotonic()
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


def started(target: dict[str, Any], threads: int) -> Member:
    """A new worker, which loads TVM meanwhile; its programs run on `threads`."""
    ours, theirs = socket.socketpair()
    handed = ["--fd", str(theirs.fileno()), "--target", json.dumps(target)]
    process = spawn(
        [sys.executable, "-m", "workers.tvm_backend.worker", *handed],
        limits=Limits(address_space=max(LEAST, int(SHARE * memory()))),
        env=environment(threads),
        pass_fds=(theirs.fileno(),),
    )
    theirs.close()
    return Member(process, Connection(ours.detach()))
