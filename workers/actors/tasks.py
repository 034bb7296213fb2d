"""The actors: one for each task, all of them the same attempt at a Job. A message carries nothing but the Job's id."""

from __future__ import annotations

from dramatiq import Actor, Broker
from dramatiq import actor as declared

from workers.actors.attempt import Attempts
from workers.messages.names import ACTOR_COMPILE, ACTOR_INSPECT, ACTOR_PEAK, ACTOR_TUNE, QUEUE_MEASURE, QUEUE_PREPARE

QUEUE_OF = {
    ACTOR_TUNE: QUEUE_MEASURE,
    ACTOR_PEAK: QUEUE_MEASURE,
    ACTOR_INSPECT: QUEUE_PREPARE,
    ACTOR_COMPILE: QUEUE_PREPARE,
}


def declare(broker: Broker, attempts: Attempts) -> list[Actor[..., None]]:
    """Declares every actor on this broker."""
    return [
        declared(_attempt(attempts), actor_name=name, queue_name=queue, broker=broker) for name, queue in QUEUE_OF.items()
    ]


def _attempt(attempts: Attempts):  # type: ignore[no-untyped-def]
    def attempt(job_id: str) -> None:
        attempts.at(job_id)

    return attempt
