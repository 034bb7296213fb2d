"""What a connection may take of the machine, beside memory. It may last for hours: its processor time has no bound."""

from __future__ import annotations

import os

from workers.sandbox import threads

DISK = 16 * 2**30
"""Bytes of files: a library, a network to compare it with, and what programs write."""
BEYOND = (4096, 80)
"""Threads that it may have beyond what the user has as it begins, and more for every processor: pools are as large."""


def processes() -> int | None:
    """As `Limits` takes them, None where it cannot be told how many the user has."""
    running = threads.of_user()
    return None if running is None else running + BEYOND[0] + BEYOND[1] * (os.cpu_count() or 1)
