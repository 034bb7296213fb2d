"""The pipes between a supervisor and its child."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
from contextlib import ExitStack, suppress

from workers.messages.channel import Control
from workers.sandbox.spawn import Process
from workers.supervision.lines import LogTail

CHUNK = 1 << 20


class Wires:
    """Order and control out, events and log in. Nothing here ever blocks."""

    def __init__(self, process: Process, events: int, order: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin.fileno()
        self._log = process.stdout.fileno()
        self._events = events
        self._outgoing = bytearray(order)
        self._outgoing += b"\n"
        self.log = LogTail()
        with ExitStack() as held:
            pidfd = os.pidfd_open(process.pid)
            held.callback(os.close, pidfd)
            self._selector = held.enter_context(selectors.DefaultSelector())
            for fd in (self._stdin, self._log, events):
                os.set_blocking(fd, False)
            for fd in (self._log, events):
                with suppress(OSError):  # a user may be over the quota for large pipes
                    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, CHUNK)
            self._selector.register(pidfd, selectors.EVENT_READ)
            self._selector.register(events, selectors.EVENT_READ)
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
            self._held = held.pop_all()

    def say(self, word: Control) -> None:
        """Puts a control word behind what is still to be written."""
        if not self._outgoing and self._stdin not in self._selector.get_map():
            self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._outgoing += json.dumps(word).encode() + b"\n"

    def wait(self, timeout: float) -> bytes:
        """Waits for something to happen; returns what came on the event pipe, b"" if that was nothing."""
        chunk = b""
        for key, _ in self._selector.select(timeout):
            if key.fd == self._events:
                chunk = os.read(self._events, CHUNK)
                if not chunk:  # closed by the child: only its end is left to wait for
                    self._selector.unregister(self._events)
            elif key.fd == self._stdin:
                self._write()
        return chunk

    def _write(self) -> None:
        try:
            del self._outgoing[: os.write(self._stdin, self._outgoing)]
        except BlockingIOError:
            return
        except BrokenPipeError:  # a child that closed its input is dealt with by the deadlines
            self._outgoing.clear()
        if not self._outgoing:
            self._selector.unregister(self._stdin)

    def read_events(self) -> bytes:
        """Up to a chunk of the event pipe; b"" when there is nothing."""
        try:
            return os.read(self._events, CHUNK)
        except BlockingIOError:
            return b""

    def read_log(self) -> None:
        """One chunk at most: a child that prints without end is slowed by its full pipe, not served."""
        with suppress(BlockingIOError):
            self.log.feed(os.read(self._log, CHUNK))

    def close(self) -> None:
        """But for what it was given."""
        self._held.close()
