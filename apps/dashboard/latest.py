"""Work that a page waits for, or that failed."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from apps.tuning.models import Job
from apps.tuning.states import ACTIVE, State
from apps.tuning.waiting import wait_of


def latest(jobs: QuerySet[Job]) -> dict[str, Any]:
    """Of jobs that do the same, the newest: as `job` while it goes on, with the `wait` where it is queued, as `failed` where
    it did."""
    newest = jobs.first()
    job = newest if newest and newest.state in ACTIVE else None
    return {"job": job, "wait": wait_of(job), "failed": newest if newest and newest.state == State.FAILED else None}
