"""Reads an order on standard input, does its task, and tells events on the supervisor's pipe."""

from __future__ import annotations

import errno
import os
import sys
import traceback

from workers.child.clock import RunClock
from workers.child.pulse import Pulse
from workers.child.tasks import task_named
from workers.messages.channel import ControlReader, EventWriter
from workers.messages.full_disk import NO_ROOM
from workers.messages.names import READING
from workers.networks.errors import NetworkError

LASTING = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)
"""What is not there, or not allowed, is not so at the next attempt either."""
FULL = (*map(os.strerror, NO_ROOM), "NoSpaceLeft", os.strerror(errno.ENOMEM), "bad_alloc", "can't start new thread")
"""In what a linker, the library's own run script or ONNX Runtime's process says when a disk is full (NoSpaceLeft is Zig's), or
anybody without memory or processes."""


def main() -> int:
    control, events = ControlReader(), EventWriter.from_environment()
    order = control.order()
    pulse = Pulse(events.emit, RunClock(order.get("clock", 0.0)))
    tunes = order["task"] == "tune"  # which says itself when it is back where it was, and why it ended
    if not tunes:
        pulse.clock.go()
    try:
        task_named(order["task"])(order, control, pulse)
        if not tunes:
            pulse.tell("finished", reason="done")
    except Exception as error:
        traceback.print_exc()
        reason, next_step = explain(error)
        if passing(error, order["task"]):
            # No `failed`, which is final: the next attempt may find the machine better. After the third, this is the reason.
            pulse.tell("log", level="error", text=reason)
            return 1
        pulse.tell("failed", error=type(error).__name__, reason=reason, next_step=next_step)
        return 1
    finally:
        pulse.close()
    return 0


def passing(error: Exception, task: str) -> bool:
    """Whether the machine had no room, no process or no time to spare, and what was asked for is not to blame."""
    if task in READING:
        return False
    if any(sign in str(error) for sign in FULL):
        return True
    return bool(getattr(error, "passing", isinstance(error, (OSError, MemoryError)) and not isinstance(error, LASTING)))


def explain(error: Exception) -> tuple[str, str]:
    """What went wrong and what the user can do about it."""
    if isinstance(error, NetworkError):
        return f"{error.value}: {error.reason}", error.next_step
    next_step = getattr(
        error, "next_step", "the end of the log says more; if the network is sound, report it with the log"
    )
    return str(error).strip()[:2000] or type(error).__name__, next_step


if __name__ == "__main__":
    sys.exit(main())
