"""Ending a process group by its number, for those who hold a pid and not a Process."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from workers.sandbox.tree import Tree

_UNKNOWN = "/no-token"


def end_group(pid: int, grace: float) -> int | None:
    """SIGTERM, `grace` seconds, SIGKILL to the session led by `pid` and its descendants; reaps `pid` if it is ours.

    Returns the exit status as subprocess gives it (negative: the signal), or None when `pid` is not our child. Raises
    ValueError for a pid that leads no session of its own: its group may hold the caller.
    """
    try:
        if os.getsid(pid) != pid:
            raise ValueError(f"process {pid} leads no session: end it through whoever started it")
    except ProcessLookupError:
        return None
    Tree(pid, _UNKNOWN).end(grace)
    deadline = time.monotonic() + 1.0
    with suppress(ChildProcessError):
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
    return None
