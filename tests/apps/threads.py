"""Threads that use the database, each by a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """What `work` answers to every number below `count`, all at the same time; in the order of their ends."""
    ended: list[T] = []

    def run(number: int) -> None:
        try:
            ended.append(work(number))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended
