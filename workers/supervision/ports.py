"""What supervision needs from whoever keeps the events, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, Protocol

from workers.messages.channel import Wish
from workers.messages.events import Event

EndingKind = Literal["finished", "paused", "stopped", "failed", "crashed", "lost"]


class Journal(Protocol):
    """Where events are kept. Called from one thread, never at the same time."""

    def write(self, events: Sequence[Event]) -> None:
        """Keeps these events, in order, in one transaction: when it returns they are safe. Raises LeaseLost."""
        ...

    def heartbeat(self) -> Wish:
        """Called every `Deadlines.heartbeat` seconds, events or not; returns what is wanted. Raises LeaseLost."""
        ...


@dataclass(frozen=True)
class Deadlines:
    """Seconds. With these a stop takes at most heartbeat + stop = 4 s and a kill.

    `heartbeat` between looks at what the user wants (a journal may renew its lease less often); `batch` from the
    first event of a batch to its write; `silence` without an event until a child counts as hung; `turn`, `pause`, `stop`
    from the word to the kill, `finish` from the last event to it; `total` for the whole attempt, None for no end.
    """

    heartbeat: float = 1.0
    batch: float = 0.25
    silence: float = 60.0
    turn: float = 60.0
    pause: float = 5.0
    stop: float = 3.0
    finish: float = 5.0
    total: float | None = None


@dataclass(frozen=True)
class Speech:
    """How much a child may say in all: `events`, and `bytes` of them."""

    events: float = inf
    bytes: float = inf


@dataclass(frozen=True)
class Ending:
    """How an attempt ended. `last` is the `finished` or `failed` event, if one came.

    `cause` of a crash: "signal", "exit", "cpu", "memory", "disk", "processes", "silent", "protocol", "time", "start"; else "".
    `detail` is for the user. `exit_code` is as subprocess gives it; `log` the tail of what it printed.
    """

    kind: EndingKind
    cause: str = ""
    detail: str = ""
    exit_code: int | None = None
    log: str = ""
    last: Event | None = None
