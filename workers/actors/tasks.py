"""The actors: one for each task, called like it, all of them the same attempt at a Job. A message carries nothing but
the Job's id."""

from __future__ import annotations

from typing import Any

from dramatiq import Actor, Broker

from workers.actors.attempt import Attempts
from workers.messages.names import QUEUE_OF


def declare(broker: Broker, attempts: Attempts) -> list[Actor[..., Any]]:
    """Declares every actor on this broker."""

    def attempt(job_id: str) -> None:
        attempts.at(job_id)

    return [
        Actor(attempt, broker=broker, actor_name=task, queue_name=queue, priority=0, options={})
        for task, queue in QUEUE_OF.items()
    ]
