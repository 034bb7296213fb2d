"""What others do on a machine makes a measurement longer, never shorter."""

from __future__ import annotations

import time
from collections.abc import Callable


def quickest(attempt: Callable[[], float], bound: float, tries: int = 3) -> float:
    """The least of so many attempts; the first below `bound` is the last that is made."""
    least = attempt()
    for _ in range(tries - 1):
        if least < bound:
            break
        least = min(least, attempt())
    return least


def seconds_of(action: Callable[[], object]) -> float:
    """Of the clock."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def work_of(action: Callable[[], object]) -> float:
    """Seconds that this process had the processor, SQLite in it: of PostgreSQL's own there is nothing in them."""
    began = time.process_time()
    action()
    return time.process_time() - began
