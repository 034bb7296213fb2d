"""How many threads a user has: what the kernel counts against a bound on processes, which is one on threads."""

from __future__ import annotations

import os
from contextlib import suppress

_FIRST_NAMESPACE = 0xEFFFFFFC
"""Inode of the first namespace of processes (PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h)."""


def of_user() -> int | None:
    """Threads that run for our real user; None for root, whom the kernel does not count, and where others' are hidden.

    In a container the kernel counts those of the same number outside too, and nobody in it sees them.
    """
    user = os.getuid()
    try:
        if user == 0 or os.stat("/proc/self/ns/pid").st_ino != _FIRST_NAMESPACE:
            return None
    except OSError:
        return None
    return sum(_threads(name, user) for name in os.listdir("/proc") if name.isdigit())


def _threads(pid: str, user: int) -> int:
    """Of one process, none where it is gone or another's."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        fields = dict(line.split(b":", 1) for line in file if b":" in line)
        if int(fields[b"Uid"].split()[0]) == user:
            return max(1, int(fields[b"Threads"]))  # a zombie, which has none, counts until it is reaped
    return 0
