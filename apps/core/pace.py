"""How often somebody may try something."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from threading import Lock

Tries = deque[tuple[float, int]]
"""When each was, and what it cost."""


class Pace:
    """At most `most` in any `seconds` for each key, in this process; of more than `keys` those with the fewest tries are
    forgotten, of several the longest unseen.

    Tries, where each costs 1. For any number of threads. A try that is refused does not count. A new key begins with as many
    as one that was forgotten had at most, as far as they leave it this one: who brings many keys has no more tries of any.
    """

    def __init__(
        self, most: int, seconds: float, keys: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self.seconds = most, seconds
        self._keys, self._clock = keys, clock
        self._lock = Lock()
        self._seen: OrderedDict[str, Tries] = OrderedDict()
        self._forgotten = Tries()  # of one key: no other that was forgotten had more

    def allows(self, key: str, cost: int = 1) -> bool:
        """Counts a try; False where it is too much."""
        with self._lock:
            now = self._clock()
            if key not in self._seen:
                self._seen[key] = self._beginning(now, self.most - cost)
            tries = self._seen[key]
            self._seen.move_to_end(key)
            self._expire(tries, now)
            if _spent(tries) + cost > self.most:
                return False
            tries.append((now, cost))
            return True

    def _beginning(self, now: float, most: int) -> Tries:
        self._expire(self._forgotten, now)
        if len(self._seen) >= self._keys:
            for tries in self._seen.values():
                self._expire(tries, now)
            fewest = sorted(self._seen, key=lambda key: _spent(self._seen[key]))
            gone = [self._seen.pop(key) for key in fewest[: max(1, self._keys // 10)]]  # to look through all is slow
            self._forgotten = max(gone[-1], self._forgotten, key=_spent)  # of equals the newer
        tries = self._forgotten.copy()
        while tries and _spent(tries) > most:
            tries.popleft()
        return tries

    def _expire(self, tries: Tries, now: float) -> None:
        while tries and now - tries[0][0] >= self.seconds:
            tries.popleft()


def _spent(tries: Tries) -> int:
    return sum(cost for _, cost in tries)
