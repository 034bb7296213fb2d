"""Reads an order on standard input, does its task, and tells events on the supervisor's pipe."""

from __future__ import annotations

import sys
import time
import traceback

from workers.child.pulse import Pulse
from workers.child.tasks import task_named
from workers.messages.channel import ControlReader, EventWriter
from workers.networks.errors import NetworkError


class RunClock:
    """Tuning time in seconds: counts on from what earlier attempts took."""

    def __init__(self, already: float) -> None:
        self._began = time.monotonic() - already

    def now(self) -> float:
        return time.monotonic() - self._began


def main() -> int:
    control, events = ControlReader(), EventWriter.from_environment()
    order = control.order()
    pulse = Pulse(events.emit, RunClock(order.get("clock", 0.0)))
    try:
        task_named(order["task"])(order, control, pulse)
        if order["task"] != "tune":  # a tuning says itself why it ended
            pulse.tell("finished", reason="done")
    except Exception as error:
        traceback.print_exc()
        reason, next_step = explain(error)
        pulse.tell("failed", error=type(error).__name__, reason=reason, next_step=next_step)
        return 1
    finally:
        pulse.close()
    return 0


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
