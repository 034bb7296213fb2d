"""A worker process, and the candidates that it has in hand."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from workers.engine.evaluator.estimate import of_turns
from workers.engine.ports import Candidate, Outcome
from workers.engine.space import Configuration
from workers.sandbox.spawn import Process

LONGEST_ANSWER = 16 * 2**20
"""Bytes; the longest is a part of a device's file, in base64 (`messages.device.PART`). Who announces any more is not given the
memory for it."""

LONGEST_ERROR = 500
"""Letters of an answer's error that are taken: it is told in rows, logs and reasons. A worker says no more than 300 of it."""


class Dead(Exception):
    """A worker died or was late; `cause` is an outcome's cause."""

    def __init__(self, cause: str, error: str) -> None:
        super().__init__(error)
        self.cause = cause


def in_words(status: int) -> str:
    """Why a process is gone."""
    if status >= 0:
        return f"left with status {status}"
    with suppress(ValueError):  # real-time signals have no names
        return f"ended by {signal.Signals(-status).name}"
    return f"ended by signal {-status}"


def heard(connection: Connection, until: float, longest: int = LONGEST_ANSWER) -> dict[str, Any] | None:
    """What the other side sent; None where it is not whole by then (`time.monotonic`), as of one that begins an answer and
    never ends it. Raises EOFError, and OSError where it is none."""
    if (header := _read(connection, 4, until)) is None:
        return None
    if not 0 <= (size := int.from_bytes(header, "big", signed=True)) <= longest:
        raise OSError(f"an answer of {size} bytes")
    if (said := _read(connection, size, until)) is None:
        return None
    try:
        return dict(json.loads(said))
    except (ValueError, TypeError, RecursionError) as error:
        raise OSError(f"no answer: {error}") from None


def _read(connection: Connection, size: int, until: float) -> bytes | None:
    """As `Connection.recv_bytes`, which waits for ever, reads."""
    found = bytearray()
    while len(found) < size:
        if not connection.poll(max(until - time.monotonic(), 0)):
            return None
        if not (part := os.read(connection.fileno(), size - len(found))):
            raise EOFError
        found += part
    return bytes(found)


@dataclass(eq=False)
class Member:
    """One process that takes orders, and what it has in hand. `end` ends it and returns its exit status, negative for a
    signal's; `close` leaves nothing of it. `parent` is the process that it dies with, where that is not ours."""

    pid: int
    connection: Connection
    end: Callable[[], int]
    parent: Process | None = None
    hand: list[Task] = field(default_factory=list)
    timeout: float = float("inf")
    ordered: float = 0.0

    @property
    def orphaned(self) -> bool:
        """Whether that is gone: then it dies through no fault of its own, nor of its program."""
        return self.parent is not None and self.parent.exited()

    @property
    def ended(self) -> bool:
        """Of one that nothing was asked of: unasked it says nothing, so that what can be heard is its end."""
        return self.connection.poll(0)

    @property
    def late(self) -> float:
        """When it will be."""
        return self.ordered + self.timeout

    def close(self) -> None:
        self.end()
        self.connection.close()

    def gone(self) -> str:
        """How it came that there will be no answer."""
        return f"the worker died: {in_words(self.end())}"

    def send(self, verb: str, timeout: float, **arguments: Any) -> None:
        self.timeout, self.ordered = timeout, time.monotonic()
        try:
            self.connection.send_bytes(json.dumps({"verb": verb, **arguments}).encode())
        except OSError:
            pass  # seen again, with its cause, when the answer is read

    def receive(self) -> dict[str, Any]:
        """The answer; raises Dead when there will be none, or none that a worker should outlive."""
        try:
            answer = heard(self.connection, self.late)
        except (EOFError, OSError):
            raise Dead("crash", self.gone()) from None
        if answer is None:
            raise Dead("timeout", f"the program did not finish within {self.timeout:.3g} s")
        for name in {"error", "fault"} & answer.keys():
            answer[name] = str(answer[name])[:LONGEST_ERROR]
        if answer.get("cause") == "memory":  # what is left of it may not do for the next candidate either
            raise Dead("memory", answer.get("error", ""))
        return answer


@dataclass(eq=False)
class Task:
    """A candidate on its way through the pool."""

    id: int
    candidate: Candidate
    choices: tuple[int, ...] | None = None
    identity: str = ""
    build_seconds: float = 0.0
    member: Member | None = field(default=None, repr=False)
    outcome: Outcome | None = None
    spared: bool = False
    """Whether a worker that had this died with its parent, or while it had nothing to do, or a device's line broke: perhaps
    through no fault of it."""
    alone: bool = False
    """Whether it failed in company: then nobody knows yet whose fault that was."""
    applier: Member | None = field(default=None, repr=False)
    """Who has its scheduled program; another makes it anew."""
    size: float = 0.0
    library: str = ""
    """Of one that runs on a device elsewhere: its library's path, which others may be in too."""
    program: dict[str, Any] = field(default_factory=dict, repr=False)
    """And what the device is told of it: its id, its name in the library, and what `Timer.keep` takes."""
    times: tuple[float, ...] = ()

    @property
    def order(self) -> dict[str, Any]:
        """What a worker must know to apply or to compile it."""
        configuration = self.candidate.configuration
        return {
            "id": self.id,
            "operator": self.candidate.operator,
            "sketch": configuration.sketch,
            "choices": list(configuration.choices),
        }

    def applied(self, answer: dict[str, Any], by: Member) -> None:
        """What a worker answered to "apply"."""
        self.identity, self.size, self.applier = answer["identity"], answer["size"], by
        self.choices = None if answer["choices"] is None else tuple(answer["choices"])

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
        if self.choices not in (None, configuration.choices):  # a history keeps it for good
            configuration = Configuration(configuration.sketch, self.choices)
        self.outcome = Outcome(
            self.candidate, configuration, self.identity, seconds, build_seconds=self.build_seconds, **fields
        )
