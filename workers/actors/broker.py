"""The broker as the workers use it: no retries, no time limits, nothing that raises in a thread.

A message is only a hint that a Job waits: whether it runs, and again, is decided by the claim and the reconciler. So
the middlewares for retries, time limits, ages and shutdown are left out; they would interrupt a run of hours.
"""

from __future__ import annotations

from typing import Any

import redis
from django.conf import settings
from django.db import close_old_connections, connections
from dramatiq import Middleware
from dramatiq.brokers.redis import RedisBroker

HEARTBEAT = 5_000  # ms without a sign of life after which another worker takes a message over
ANSWER = 10.0  # s; a server that is gone without a word would else be waited for until TCP gives up
ALWAYS = 1_000_000  # look for messages of dead workers at every command; the default needs minutes


class DatabaseConnections(Middleware):
    """Gives a message a connection that works, and closes a thread's connections when it ends."""

    def before_process_message(self, *_: Any) -> None:
        close_old_connections()

    def after_process_message(self, *_: Any, **__: Any) -> None:
        close_old_connections()

    def before_worker_thread_shutdown(self, *_: Any) -> None:
        connections.close_all()


def make_broker() -> RedisBroker:
    """On REDIS_URL; connects at the first use."""
    client = redis.Redis.from_url(settings.REDIS_URL, socket_timeout=ANSWER)
    return RedisBroker(  # type: ignore[no-untyped-call]
        client=client,
        namespace=settings.QUEUES,
        middleware=[DatabaseConnections()],
        heartbeat_timeout=HEARTBEAT,
        maintenance_chance=ALWAYS,
    )
