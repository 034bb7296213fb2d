"""How often somebody may try something."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock


class Pace:
    """At most `most` in any `seconds` for each key, in this process; of more than `keys` the longest unseen is forgotten.

    Tries, where each costs 1. For any number of threads. A try that is refused does not count.
    """

    def __init__(
        self, most: int, seconds: float, keys: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self.seconds = most, seconds
        self._keys, self._clock = keys, clock
        self._lock = Lock()
        self._seen: OrderedDict[str, deque[tuple[float, int]]] = OrderedDict()

    def allows(self, key: str, cost: int = 1) -> bool:
        """Counts a try; False where it is too much."""
        with self._lock:
            now = self._clock()
            tries = self._seen.setdefault(key, deque())
            self._seen.move_to_end(key)
            if len(self._seen) > self._keys:
                self._seen.popitem(last=False)
            while tries and now - tries[0][0] >= self.seconds:
                tries.popleft()
            if sum(counted for _, counted in tries) + cost > self.most:
                return False
            tries.append((now, cost))
            return True
