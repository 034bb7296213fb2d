"""Whose uploaded file is read next: many uploads or long conversions of one account keep nobody else from a verdict."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from apps.tuning.accounts import lock_account
from apps.tuning.models import Job
from apps.tuning.states import HELD
from apps.tuning.turns import next_of
from workers.messages.names import READING


def converting() -> QuerySet[Job]:
    """Conversions that a worker has. An account has one at a time: they take minutes."""
    return Job.objects.filter(task=Job.Task.CONVERT, state__in=HELD).exclude(owner=None)


def second(job: Job, ready: Q) -> bool:
    """Inside a transaction: whether another conversion of its account is held."""
    if job.owner_id is None:
        return False
    lock_account(job.owner_id)
    return converting().exclude(ready).filter(owner=job.owner_id).exclude(pk=job.pk).exists()


def next_read(ready: Q) -> Any:
    """The key of the job that reads a file and is to do so now, of those that are `ready`; None where none is."""
    busy = converting().exclude(ready).values("owner")
    jobs = Job.objects.filter(ready, task__in=READING).exclude(task=Job.Task.CONVERT, owner__in=busy)
    return next_of(jobs, READING)[0]
