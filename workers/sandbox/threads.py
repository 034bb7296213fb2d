"""How many threads a user has: what the kernel counts against a bound on processes, which is one on threads."""

from __future__ import annotations

import os
from contextlib import suppress

Beyond = tuple[int, int]
FEW, MANY = (512, 8), (4096, 80)
"""Threads that an order's child may have beyond what the user has now, and more for every processor: pools are as large."""
_FIRST_NAMESPACE = 0xEFFFFFFC
"""Inode of the first namespace of processes (PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h)."""


def beyond(most: Beyond) -> int:
    """Of a child and all it starts, which are counted where the kernel has no bound, as for root and in containers."""
    return most[0] + most[1] * (os.cpu_count() or 1)


def processes(most: Beyond) -> int | None:
    """The kernel's bound counts all threads of a user; None where it cannot be told how many those are."""
    running = of_user()
    return None if running is None else running + beyond(most)


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
