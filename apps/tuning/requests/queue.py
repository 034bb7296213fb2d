"""Jobs and their messages."""

from __future__ import annotations

from typing import Any

from apps.tuning import dispatch
from apps.tuning.models import Job


def enqueue(task: str, owner: Any, **about: Any) -> Job:
    """Inside a transaction: a job and its message."""
    job = Job.objects.create(task=task, owner=owner, **about)
    dispatch.queue(job)
    return job
