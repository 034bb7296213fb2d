"""The best so far, compiled."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.core.errors import Refused
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.queue import enqueue
from apps.tuning.states import ACTIVE


def compile_if_measured(run: TuningRun) -> Job | None:
    """Inside a transaction: an artifact of the best so far, if every operator has a best."""
    operators = list(run.operators.values_list("best_seconds", flat=True))
    if not operators or None in operators:
        return None
    waiting = Job.objects.filter(run=run, task=Job.Task.COMPILE, state__in=ACTIVE).first()
    return waiting or enqueue(Job.Task.COMPILE, run.owner, run=run, network=run.network, target=run.target)


def request_artifact(run: TuningRun, owner: Any) -> Job:
    """Compiles the best so far; a job that does so already is returned instead. Raises Refused."""
    if run.owner_id != owner.pk:
        raise Refused(run.pk, "there is no such run", "choose one of yours")
    with transaction.atomic():
        Job.objects.select_for_update().get(pk=run.job_id)
        job = compile_if_measured(run)
    if job is None:
        open_ = run.operators.filter(best_seconds=None).count()
        what = f"{open_} operators have no valid configuration yet" if open_ else "nothing was measured yet"
        raise Refused(run, what, "wait, or give the run more time")
    return job
