"""The queue's server as the site speaks to it: briefly. What it does not hear now, reconcile says again."""

from __future__ import annotations

import time
from collections.abc import Callable

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE = 2.0  # s for an answer: a server that lives has it in a millisecond
RESPITE = 5.0  # s in which one that hangs is not asked again


def client(url: str) -> redis.Redis:
    """Raises redis.RedisError within PATIENCE. Not for who waits for messages."""
    once = Retry(NoBackoff(), 0)
    return redis.Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, retry=once)


class Hung:
    """Whether the server let this process wait in vain just now: who comes next does not wait too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = 0.0

    def __bool__(self) -> bool:
        return self._clock() < self._until

    def note(self) -> None:
        self._until = self._clock() + RESPITE


HUNG = Hung()
