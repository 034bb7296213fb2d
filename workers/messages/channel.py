"""The child's end of the wires to its supervisor: events out on a pipe of their own, the order and control words in."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Literal

from workers.messages.events import Event, encode

Control = Literal["continue", "pause", "stop"]
Wish = Literal["continue", "turn", "pause", "stop"]
"""What a journal asks of an attempt. After its "turn" it pauses for others, and may finish what it has in hand."""


class LeaseLost(Exception):
    """Somebody else owns the job now: nothing more may be written for it."""


EVENTS_VARIABLE = "TUNINGSITE_EVENTS"

_STRENGTH: dict[Control, int] = {"continue": 0, "pause": 1, "stop": 2}


class EventWriter:
    """Writes events as lines; any thread may call `emit`. A slow supervisor makes it wait."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        # What this process starts must not hold the pipe open, nor write to it.
        os.set_inheritable(fd, False)

    @classmethod
    def from_environment(cls) -> EventWriter:
        """On the pipe the supervisor opened; raises KeyError when no supervisor started this process."""
        return cls(int(os.environ[EVENTS_VARIABLE]))

    def emit(self, event: Event) -> None:
        """Sends one event. Raises ValueError for what is not one, BrokenPipeError when the supervisor is gone."""
        line = memoryview(encode(event).encode() + b"\n")
        with self._lock:
            while line:
                line = line[os.write(self._fd, line) :]


class ControlReader:
    """Reads the order, then listens for control words in a thread of its own. End of file means stop: nobody is there.

    Reads the descriptor and not sys.stdin: a daemon thread inside a buffered reader aborts the interpreter when it
    exits.
    """

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self._wanted: Control = "continue"

    def order(self) -> dict[str, Any]:
        """The order this child was started for; call it once, first. Raises EOFError when the supervisor went away."""
        line = self._line()
        if line is None:
            raise EOFError("the supervisor closed the wire before it gave an order")
        order = json.loads(line)
        if not isinstance(order, dict):
            raise ValueError(f"not an order: {bytes(line[:200])!r}")
        threading.Thread(target=self._listen, name="control", daemon=True).start()
        return order

    def wanted(self) -> Control:
        """What the user wants now; never waits. A word is never taken back, and stop outdoes pause."""
        return self._wanted

    def _listen(self) -> None:
        while (line := self._line()) is not None:
            word = json.loads(line)
            if word in _STRENGTH and _STRENGTH[word] > _STRENGTH[self._wanted]:
                self._wanted = word
        self._wanted = "stop"

    def _line(self) -> bytearray | None:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            chunk = os.read(self._fd, 1 << 16)
            if not chunk:
                return None
            self._buffer += chunk
        if end + 1 < len(self._buffer):
            line = self._buffer[:end]
            del self._buffer[: end + 1]
        else:  # an order may be half a gigabyte: no copy
            line, self._buffer = self._buffer, bytearray()
            del line[end:]
        return line
