"""Jobs: new ones and their messages, those of a run, and those that need not be done."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from apps.core import clock
from apps.core.errors import Refused
from apps.tuning import dispatch
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import WAITING, State
from apps.tuning.transitions import move

AFRESH: dict[str, Any] = {"lease_until": None, "error": "", "next_step": ""}
"""Neither what went wrong with the last attempt counts any more, nor the pause after it."""


def enqueue(task: str, owner: Any, **about: Any) -> Job:
    """Inside a transaction: a job and its message."""
    job = Job.objects.create(task=task, owner=owner, **about)
    dispatch.queue(job)
    return job


def locked(run: TuningRun, owner: Any) -> Job:
    """Inside a transaction: the run's job. Raises Refused where it is not the owner's, or was deleted meanwhile."""
    job = Job.objects.select_for_update().filter(pk=run.job_id, owner=owner).first()
    if job is None:
        raise Refused(run.pk, "there is no such run", "choose one of yours")
    return job


def end_waiting(jobs: QuerySet[Job]) -> bool:
    """Inside a transaction: baselines and libraries that no worker has are over; whether there are any. Who asks has locked
    what was there; one that came since, and that somebody else is at, is left to it."""
    beside = jobs.filter(task__in=(Job.Task.BASELINE, Job.Task.COMPILE), state__in=WAITING)
    found = list(beside.select_for_update(skip_locked=True, of=("self",), no_key=True))
    for job in found:
        move(job.pk, State.DONE, Q(state__in=WAITING), ended=clock.now(), **AFRESH)
    return bool(found)
