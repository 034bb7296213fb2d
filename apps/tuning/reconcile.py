"""What nobody does any more is done by somebody else: expired leases, lost messages, interrupted jobs, what was deleted."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.core import clock
from apps.core.full_disk import with_reserve
from apps.tuning import dispatch
from apps.tuning.endings import PAUSES, after
from apps.tuning.leases import LEASE, settle
from apps.tuning.models import Job, Outbox
from apps.tuning.reading import converting
from apps.tuning.remains import clear
from apps.tuning.states import ACTIVE, HELD, State
from apps.tuning.transitions import move
from apps.tuning.turns import held_up
from workers.messages.names import QUEUE_OF, TASKS_OF, THREADS

PATIENCE = timedelta(seconds=40)
"""A queued job's message that is older is sent again."""
BUSY_PATIENCE = timedelta(minutes=10)
"""The same where all threads of its queue are at work: the message waits there, most likely."""
LONGEST = 2 * max(LEASE, *PAUSES)
"""No lease and no pause ends later from now, unless the system's clock went back."""
EXPIRED = "its worker went away and its lease ran out"


def reconcile(now: datetime | None = None) -> dict[str, int]:
    """One look at everything; safe at any time and from several processes. Returns counts by what was done."""
    now = now or clock.now()
    # Not expired at once: a worker that lives has the time to renew it.
    Job.objects.filter(state__in=ACTIVE, lease_until__gt=now + LONGEST).update(lease_until=now + LEASE)
    # Nor is it somebody else's turn until then.
    Job.objects.filter(claimed__gt=now + LONGEST).update(claimed=now)
    counts: dict[str, int] = {}
    try:
        counts |= {"expired": _expired(now), "interrupted": _interrupted(), "resent": _overdue(now)}
        counts["sent"] = dispatch.deliver(now)
    finally:  # where the disk is full this makes room
        counts["cleared"] = clear()
    return counts


def _expired(now: datetime) -> int:
    late = Q(state__in=HELD) & (Q(lease_until__lt=now) | Q(lease_until=None))
    return sum(_expire(key, late) for key in Job.objects.filter(late).values_list("pk", flat=True))


@with_reserve
def _expire(key: Any, late: Q) -> bool:
    """On a full disk too: the files of an attempt go when its job is nobody's."""
    with transaction.atomic():
        # A new fence first: whoever had the job can write no more, even while this goes on.
        job = Job.objects.select_for_update().filter(late, pk=key).first()
        if job is None:
            return False
        Job.objects.filter(pk=key).update(fence=job.fence + 1, lease_until=None)
        settle(job, after(job, "expired", EXPIRED))
    return True


def _interrupted() -> int:
    count = 0
    for job in Job.objects.filter(state=State.INTERRUPTED).order_by("created"):
        with transaction.atomic():
            if move(job.pk, State.QUEUED, Q(state=State.INTERRUPTED)):
                dispatch.queue(job)
                count += 1
    return count


def _overdue(now: datetime) -> int:
    """In one query where nothing is: every transaction is a moment in which nobody else may write."""
    late = _late(now)
    if not late.exists():
        return 0
    with transaction.atomic():
        jobs = list(late.order_by("created").only("pk"))  # anew: somebody else may have sent some meanwhile
        dispatch.queue(*jobs)
    return len(jobs)


def _late(now: datetime) -> QuerySet[Job]:
    """Queued jobs whose message is overdue, or that have none."""
    tasks = Job.objects.filter(state__in=HELD).order_by().values_list("task", flat=True)
    held = Counter(QUEUE_OF[task] for task in tasks)
    full = [queue for queue, threads in THREADS.items() if held[queue] >= threads]
    # However long they are at work: what waits there would be one message more for each job every time.
    waits = filter(dispatch.unread, full)
    busy, unread = ([task for queue in some for task in TASKS_OF[queue]] for some in (full, waits))
    # Not for ever where it was sent, by a clock that went back, in what is the future now.
    lately, patiently = ((now - patience, now + patience) for patience in (PATIENCE, BUSY_PATIENCE))
    told = Q(sent_at=None) | Q(sent_at__range=lately) | Q(sent_at__range=patiently, job__task__in=busy)
    told |= Q(sent_at__lt=now, job__task__in=unread)
    # A conversion that waits for another of its account is taken up by who has that one.
    second = Q(task=Job.Task.CONVERT, owner__in=converting().values("owner"))
    rows = Job.objects.filter(~Exists(Outbox.objects.filter(told, job=OuterRef("pk"))), state=State.QUEUED)
    return rows.exclude(second).exclude(held_up(now))
