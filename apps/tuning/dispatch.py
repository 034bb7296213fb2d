"""Messages to the workers: a job's id to the actor of its task. The outbox row is written with the change it tells of."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import cache, partial
from typing import Any

import dramatiq
from django.conf import settings
from django.db import transaction
from dramatiq.brokers.redis import RedisBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.errors import BrokerConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as Unanswered

from apps.core import clock
from apps.core.queue_server import HUNG, client
from apps.tuning.models import Job, Outbox
from apps.tuning.states import State
from workers.messages.names import QUEUE_OF, THREADS

log = logging.getLogger(__name__)


@cache
def broker() -> dramatiq.Broker:
    """The queues, for sending only: without middleware, because nothing runs here."""
    if settings.REDIS_URL.startswith("memory:"):
        stub = StubBroker(middleware=[])
        for queue in THREADS:
            stub.declare_queue(queue)
        return stub
    return RedisBroker(client=client(settings.REDIS_URL), middleware=[], namespace=settings.QUEUES)  # type: ignore[no-untyped-call]


def send(queue: str, task: str, job_id: str) -> None:
    """Puts one message into a queue; raises RedisError or BrokerConnectionError when nobody takes it."""
    broker().enqueue(dramatiq.Message(queue, task, (), {"job_id": job_id}, {}))


def unread(queue: str) -> bool:
    """Whether the server has messages of the queue that no worker took yet; none where it does not answer."""
    queues = broker()
    if HUNG:
        return False
    try:
        if isinstance(queues, StubBroker):
            return not queues.queues[queue].empty()
        assert isinstance(queues, RedisBroker)
        return bool(queues.client.llen(f"{queues.namespace}:{queue}"))
    except (RedisError, OSError) as error:
        if isinstance(error, Unanswered):
            HUNG.note()
        return False


def queue(*jobs: Job) -> None:
    """Inside the transaction that queues the jobs: their messages are sent when that is committed, or later by reconcile, as
    is that of a job that has to wait."""
    Outbox.objects.filter(job__in=jobs).delete()
    Outbox.objects.bulk_create([Outbox(job=job) for job in jobs])
    transaction.on_commit(partial(deliver, job__in=[job.pk for job in jobs]), robust=True)
    log.debug("messages for %s", jobs)


def deliver(now: datetime | None = None, **only: Any) -> int:
    """Sends what was not sent and is due, oldest first; returns how many. Without a broker, or with one that hangs, the
    rest stays for the next time."""
    sent = 0
    if HUNG:
        return sent
    rows = Outbox.objects.filter(sent_at=None, **only).exclude(
        job__state=State.QUEUED, job__lease_until__gte=now or clock.now()
    )
    for row in rows.select_related("job"):
        try:
            send(QUEUE_OF[row.job.task], row.job.task, str(row.job_id))
        except (RedisError, BrokerConnectionError, OSError) as error:
            if isinstance(error, Unanswered):
                HUNG.note()
            log.warning("no message broker (%s); job %s is sent when there is one", error, row.job_id)
            return sent
        Outbox.objects.filter(pk=row.pk).update(sent_at=clock.now())
        sent += 1
    return sent
