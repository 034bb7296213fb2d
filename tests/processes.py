"""Other processes: whether they live, and what comes true of them in time."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


def stat_of(pid: int) -> list[str]:
    """What /proc says of it from its state on: that, then its parent; raises OSError when there is none."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def alive(pid: int) -> bool:
    with suppress(OSError):
        return stat_of(pid)[0] not in "ZX"
    return False


def kill(*pids: int, number: int = signal.SIGKILL) -> None:
    """The signal to those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def eventually(condition: Callable[[], Any], seconds: float = 60.0, what: str = "it") -> Any:
    """The first true value of `condition`; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.02)
    return found


def comes_true(condition: Callable[[], object], seconds: float) -> bool:
    """Whether it does before so many seconds have passed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())
