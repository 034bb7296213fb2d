"""Jobs: new ones and their messages, and those of a run."""

from __future__ import annotations

from typing import Any

from apps.core.errors import Refused
from apps.tuning import dispatch
from apps.tuning.models import Job, TuningRun


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
