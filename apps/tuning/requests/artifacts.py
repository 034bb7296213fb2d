"""The best so far, compiled."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Count

from apps.core.errors import Refused
from apps.tuning import quota
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.limits import check_jobs
from apps.tuning.requests.queue import enqueue, locked
from apps.tuning.states import ACTIVE
from apps.tuning.transitions import tell
from workers.messages.causes import UNBUILT
from workers.messages.orders import FUTILE


def compile_if_measured(run: TuningRun) -> Job | None:
    """Inside a transaction: an artifact of the best so far, if the run is `measured`. Where it is not, or there is no room for
    one, the run's log says so."""
    text = f"no library was compiled: {_missing(run)}. Next step: start a run with more time"
    if measured(run):
        try:
            return _compiling(run)
        except Refused as error:
            text = (
                f"the best was not compiled: {error.reason}. Next step: {error.next_step}, then compile it on this page"
            )
    tell(run, "log", level="warning", text=text)
    return None


def request_artifact(run: TuningRun, owner: Any) -> Job:
    """Compiles the best so far; a job that does so already is returned instead. Raises Refused."""
    with transaction.atomic():
        locked(run, owner)
        if not measured(run):
            raise Refused(run, _missing(run), "wait, or give the run more time")
        return _compiling(run)


def measured(run: TuningRun) -> bool:
    """Whether every operator has a best, or none was found in enough tries."""
    return run.operators.exclude(best_seconds=None).exists() and not _open(run)


def _missing(run: TuningRun) -> str:
    """Why it is not `measured`."""
    open_ = _open(run)
    return f"{open_} operators have no valid configuration yet" if open_ else "nothing was measured yet"


def _open(run: TuningRun) -> int:
    """Operators of which too few configurations were tried to say that none works."""
    without = list(run.operators.filter(best_seconds=None).values_list("index", flat=True))
    built = run.measurements.filter(operator__in=without).exclude(cause__in=UNBUILT)
    tried = built.values("operator").annotate(count=Count("pk"))
    return len(without) - tried.filter(count__gte=FUTILE).count()


def _compiling(run: TuningRun) -> Job:
    """The job that does it, a new one where there is none. Raises Refused where the owner has no room for the library, or too
    much that waits."""
    waiting = Job.objects.filter(run=run, task=Job.Task.COMPILE, state__in=ACTIVE).first()
    if waiting is not None:
        return waiting
    check_jobs(run.owner)
    quota.check_library(run)
    return enqueue(Job.Task.COMPILE, run.owner, run=run, network=run.network, target=run.target)
