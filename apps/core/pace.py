"""How often somebody may try something."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock


class Pace:
    """At most `tries` in any `seconds` for each key, in this process; of more than `keys` the longest unseen is forgotten.

    For any number of threads. A try that is refused does not count.
    """

    def __init__(
        self, tries: int, seconds: float, keys: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tries, self.seconds = tries, seconds
        self._keys, self._clock = keys, clock
        self._lock = Lock()
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def allows(self, key: str) -> bool:
        """Counts a try; False where it is one too many."""
        with self._lock:
            now = self._clock()
            times = self._seen.setdefault(key, deque())
            self._seen.move_to_end(key)
            if len(self._seen) > self._keys:
                self._seen.popitem(last=False)
            while times and now - times[0] >= self.seconds:
                times.popleft()
            if len(times) >= self.tries:
                return False
            times.append(now)
            return True
