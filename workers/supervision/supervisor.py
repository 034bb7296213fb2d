"""Runs one child for one order. The calling thread must outlive the call: the kernel ties the child's life to it."""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from workers.messages.channel import EVENTS_VARIABLE, Control
from workers.messages.events import Event, decode, encode
from workers.sandbox.spawn import Access, Limits, Process, SpawnError, spawn
from workers.sandbox.watchdog import guarded
from workers.supervision.lines import LineBuffer, LogTail
from workers.supervision.ports import Deadlines, Ending, EndingKind, Journal, LeaseLost

BATCH_EVENTS = 256
BATCH_BYTES = 4 << 20

_TICK = 0.25  # s: the longest wait; memory and the log are looked at this often
_LOOK = 2.0  # s between full searches for members of the child's tree
_LONGEST_WAIT = 1.0  # s that one wait adds to a child's silence: after a suspend everybody was silent
_CHUNK = 1 << 20
_STOPPED: dict[Control, EndingKind] = {"pause": "paused", "stop": "stopped"}


class _Violation(Exception):
    """The child broke a rule and has to go."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


class _Batch:
    """Events on their way to the journal."""

    def __init__(self, journal: Journal, clock: Callable[[], float], seconds: float) -> None:
        self._journal = journal
        self._clock = clock
        self._seconds = seconds
        self._events: list[Event] = []
        self._bytes = 0
        self.due = float("inf")
        self.kept = 0

    def add(self, event: Event, size: int) -> None:
        if not self._events:
            self.due = self._clock() + self._seconds
        self._events.append(event)
        self._bytes += size
        if len(self._events) >= BATCH_EVENTS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        events, self._events, self._bytes, self.due = self._events, [], 0, float("inf")
        if events:
            self._journal.write(events)
            self.kept += len(events)


class _Wires:
    """The pipes to one child: order and control out, events and log in. Nothing here ever blocks."""

    def __init__(self, process: Process, events: int, order: bytes) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin.fileno()
        self._log = process.stdout.fileno()
        self._events = events
        self._outgoing = bytearray(order + b"\n")
        self._pidfd = os.pidfd_open(process.pid)
        self._selector = selectors.DefaultSelector()
        self.log = LogTail()
        for fd in (self._stdin, self._log, events):
            os.set_blocking(fd, False)
        for fd in (self._log, events):
            with suppress(OSError):  # a user may be over the quota for large pipes
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _CHUNK)
        self._selector.register(self._pidfd, selectors.EVENT_READ)
        self._selector.register(events, selectors.EVENT_READ)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)

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
                chunk = os.read(self._events, _CHUNK)
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
            return os.read(self._events, _CHUNK)
        except BlockingIOError:
            return b""

    def read_log(self) -> None:
        """One chunk at most: a child that prints without end is slowed by its full pipe, not served."""
        with suppress(BlockingIOError):
            self.log.feed(os.read(self._log, _CHUNK))

    def close(self) -> None:
        self._selector.close()
        os.close(self._pidfd)
        os.close(self._events)


class _Supervision:
    """One attempt: the loop, the deadlines and the verdict."""

    def __init__(
        self, process: Process, wires: _Wires, journal: Journal, deadlines: Deadlines, resident: int | None,
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._process = process
        self._wires = wires
        self._journal = journal
        self._deadlines = deadlines
        self._resident = resident
        self._clock = clock
        self._lines = LineBuffer()
        self._batch = _Batch(journal, clock, deadlines.batch)
        self._last: Event | None = None
        self._wanted: Control = "continue"
        self._quiet = 0.0
        self._began = clock()
        self._beat_due = self._began
        self._look_due = self._began
        self._kill_due = float("inf")
        self._forced = False

    def watch(self) -> Ending:
        violation: _Violation | None = None
        try:
            while not self._process.exited():
                self._listen()
                self._wires.read_log()
                self._check()
                if self._clock() >= self._batch.due:
                    self._batch.flush()
                self._beat()
                if self._clock() >= self._kill_due:
                    self._forced = True
                    break
        except _Violation as broken:
            violation = broken
        self._process.tree.end(0.5 if self._forced else 0.0)
        if violation is None or violation.cause != "protocol":
            violation = self._drain() or violation
        self._batch.flush()
        self._wires.read_log()
        return self._ending(violation)

    def lost(self) -> Ending:
        self._process.tree.end(0.0)
        self._wires.read_log()
        detail = "another worker owns this job now; what was saved is kept"
        return self._made("lost", self._process.end(0.0), detail=detail)

    def _listen(self) -> None:
        before = self._clock()
        timeout = min(_TICK, max(0.0, self._batch.due - before))
        chunk = self._wires.wait(timeout)
        if chunk:
            self._take(chunk)
            self._quiet = 0.0
        else:
            self._quiet += min(self._clock() - before, _LONGEST_WAIT)

    def _take(self, chunk: bytes) -> None:
        try:
            for line in self._lines.feed(chunk):
                event = decode(line.decode())
                encode(event)  # refuses NaN and infinity, which json reads and no journal can keep
                self._batch.add(event, len(line))
                if event["kind"] in ("finished", "failed"):
                    self._last = event
                    self._kill_due = min(self._kill_due, self._clock() + self._deadlines.finish)
        except (ValueError, RecursionError) as error:
            reason = str(error)[:300] or type(error).__name__
            raise _Violation("protocol", f"the child sent something that is not an event: {reason}") from error

    def _check(self) -> None:
        now = self._clock()
        if self._quiet > self._deadlines.silence:
            raise _Violation(
                "silent", f"no sign of life for {self._deadlines.silence:g} s: it hangs or swaps, and was ended"
            )
        if self._deadlines.total is not None and now - self._began > self._deadlines.total:
            raise _Violation("time", f"not done after {self._deadlines.total:g} s; it was ended")
        if self._resident is None:
            return
        if now >= self._look_due:
            self._look_due = now + _LOOK
            self._process.tree.refresh()
        held = self._process.tree.resident()
        if held > self._resident:
            raise _Violation(
                "memory",
                f"it and its workers held {held / 2**20:.0f} MiB of memory, more than the "
                f"{self._resident / 2**20:.0f} MiB allowed; raise the limit or take a smaller network",
            )

    def _beat(self) -> None:
        now = self._clock()
        if now < self._beat_due:
            return
        self._beat_due = now + self._deadlines.heartbeat
        wanted = self._journal.heartbeat()
        if wanted == self._wanted or wanted == "continue" or self._wanted == "stop":
            return
        self._wanted = wanted
        self._wires.say(wanted)
        grace = self._deadlines.stop if wanted == "stop" else self._deadlines.pause
        self._kill_due = min(self._kill_due, self._clock() + grace)

    def _drain(self) -> _Violation | None:
        # Every writer is dead, so what is in the pipe is all there is; half a line at its end was never an event.
        try:
            while chunk := self._wires.read_events():
                self._take(chunk)
        except _Violation as broken:
            return broken
        return None

    def _ending(self, violation: _Violation | None) -> Ending:
        level, problem = 0, ""
        try:
            level = self._process.level()
        except SpawnError as error:
            problem = str(error)
        code = self._process.end(0.0)
        if violation is not None:
            return self._made("crashed", code, cause=violation.cause, detail=violation.detail, level=level)
        if self._last is not None:
            return self._made(self._said(self._last), code, level=level)
        if self._wanted in _STOPPED:
            return self._made(_STOPPED[self._wanted], code, level=level)
        if problem:
            return self._made("crashed", code, cause="start", detail=problem)
        cause, detail = _explain(code)
        return self._made("crashed", code, cause=cause, detail=detail, level=level)

    @staticmethod
    def _said(last: Event) -> EndingKind:
        if last["kind"] == "failed":
            return "failed"
        reason = last.get("reason")
        return "paused" if reason == "paused" else "stopped" if reason == "stopped" else "finished"

    def _made(self, kind: EndingKind, code: int, cause: str = "", detail: str = "", level: int = 0) -> Ending:
        return Ending(
            kind, cause, detail, code, self._forced, self._wires.log.text(), self._last, self._batch.kept, level
        )


def _explain(code: int) -> tuple[str, str]:
    if code == -signal.SIGXCPU:
        return "cpu", "it used up the processor time it was given"
    if code == -signal.SIGKILL:
        return "signal", "it was killed (SIGKILL): by hand, or by the kernel when memory ran out"
    if code < 0:
        with suppress(ValueError):
            return "signal", f"it was ended by {signal.Signals(-code).name}"
        return "signal", f"it was ended by signal {-code}"
    return "exit", f"it exited with status {code} without saying that it had finished; its last output is kept"


@contextmanager
def _termination_raises() -> Iterator[None]:
    """SIGTERM unwinds the stack instead of ending us at once, where nobody else has decided what it does."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if mine:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if mine:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def supervise(
    order: Mapping[str, Any],
    journal: Journal,
    *,
    argv: Sequence[str] = (sys.executable, "-m", "workers.child"),
    limits: Limits | None = None,
    access: Access | None = None,
    resident: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    deadlines: Deadlines | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Ending:
    """Starts `argv`, gives it the order, relays its events until it is over; leaves no process behind.

    `resident`: bytes of memory for the child and all it starts, None for no watch. Every event is written to the
    journal once and in order. An exception of the journal other than LeaseLost, KeyboardInterrupt and SIGTERM (main
    thread) end the child and go on to the caller.
    """
    line = json.dumps(order, allow_nan=False).encode()
    with _termination_raises():
        reading, writing = os.pipe()
        try:
            process = spawn(
                argv,
                limits=limits,
                access=access,
                env={**(env or {}), EVENTS_VARIABLE: str(writing)},
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writing,),
            )
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        with process, guarded(process):
            wires = _Wires(process, reading, line)
            try:
                run = _Supervision(process, wires, journal, deadlines or Deadlines(), resident, clock)
                try:
                    return run.watch()
                except LeaseLost:
                    return run.lost()
            finally:
                wires.close()
