"""Processes whose parent is gone: the kernel gives them to the launcher, which ends them.

A worker that is killed ends what it started by a watchdog of its own; what hid from that, and the watchdog, come here.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

LOOK = 1.0  # s between two looks
PATIENCE = 2.0  # s that a watchdog may still need
_PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """From now on descendants of this process that lose their parent become its children."""
    ctypes.CDLL(None).prctl(ctypes.c_int(_PR_SET_CHILD_SUBREAPER), *map(ctypes.c_ulong, (1, 0, 0, 0)))


def children() -> Iterator[int]:
    """Of this process; none where the kernel does not list them."""
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, listed.read_text().split())


class Orphans:
    """For a process whose only other children are those it names in `ours` when asked."""

    def __init__(self, ours: Callable[[], Collection[int]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ours = ours
        self._clock = clock
        self._due = clock()
        self._since: dict[int, float] = {}

    def look(self) -> None:
        """Once a second: takes leave of those that ended and kills those that have been here too long."""
        if self._clock() >= self._due:
            self._due = self._clock() + LOOK
            self.end(PATIENCE)

    def end(self, patience: float = 0.0) -> bool:
        """Kills those that have been here for that long; whether any is left. Their children come here in turn."""
        ours, now = set(self._ours()), self._clock()
        self._since = {pid: self._since.get(pid, now) for pid in children() if pid not in ours and not _left(pid)}
        for pid, since in self._since.items():
            if now - since >= patience:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        return bool(self._since)


def _left(pid: int) -> bool:
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return True
