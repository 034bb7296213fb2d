"""How many of something somebody may have at a time."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Seats:
    """At most `most` taken for each key, in this process. For one thread, as an event loop is."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: Counter[Any] = Counter()

    def take(self, key: Any) -> bool:
        """False where all are taken; otherwise one `leave` is owed."""
        if self._taken[key] >= self.most:
            return False
        self._taken[key] += 1
        return True

    def leave(self, key: Any) -> None:
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]
