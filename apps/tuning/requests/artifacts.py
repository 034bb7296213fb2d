"""The best so far, compiled."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.core.errors import Refused
from apps.tuning import quota
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.limits import check_jobs
from apps.tuning.requests.queue import enqueue, locked
from apps.tuning.states import ACTIVE, HELD, WAITING, State
from apps.tuning.transitions import tell


def compile_if_measured(run: TuningRun) -> Job | None:
    """Inside a transaction: an artifact of the best so far, if the run is `measured`; after one that is being compiled, which
    has what was best when that began. Where it is not, or there is no room for one, the run's log says so."""
    try:
        if measured(run):
            return _compiling(run, WAITING)
        reason, next_step = _missing(run)
    except Refused as error:
        reason, next_step = error.reason, f"{error.next_step}, then compile it on this page"
    tell(run, "log", level="warning", text=f"the best was not compiled: {reason}. Next step: {next_step}")
    return None


def request_artifact(run: TuningRun, owner: Any) -> Job:
    """Compiles the best so far; a job that does so already is returned instead. Raises Refused."""
    with transaction.atomic():
        locked(run, owner)
        if not measured(run):
            raise Refused(run.network.name, *_missing(run))
        return _compiling(run, ACTIVE)


def compiling(job: Job) -> QuerySet[Job]:
    """Libraries of a run that are to be made or are made: of what is stopped meanwhile there will be none."""
    stopped = Q(state__in=HELD, wanted=Job.Wanted.STOP)
    return Job.objects.filter(run__job=job, task=Job.Task.COMPILE, state__in=ACTIVE).exclude(stopped)


def being_compiled(job: Job) -> bool:
    """Whether another job is at a library of the run that `job` should make one of: the later best is to be told last."""
    others = Job.objects.filter(run=job.run_id, task=Job.Task.COMPILE, state__in=HELD).exclude(pk=job.pk)
    return job.task == Job.Task.COMPILE and others.exists()


def measured(run: TuningRun) -> bool:
    """Whether every operator has a best, or none was found in enough tries."""
    return run.operators.exclude(best_seconds=None).exists() and not _open(run)


def _missing(run: TuningRun) -> tuple[str, str]:
    """Why it is not `measured`, and what to do about it."""
    more = "wait, or give a run more time"
    if open_ := _open(run):
        return f"{open_} operators have no valid configuration yet", more
    if run.measurements.exists():
        return "no configuration of any operator works", "look at their causes in the tuning log"
    return "nothing was measured yet", more


def _open(run: TuningRun) -> int:
    """Operators of which too few configurations were tried to say that none works."""
    return sum(not operator.given_up for operator in run.operators.filter(best_seconds=None))


def _compiling(run: TuningRun, does: Collection[State]) -> Job:
    """The job that does it: one in a state that `does`, else a new one. Raises Refused where the owner has no room for the
    library, or too much that waits."""
    known = compiling(run.job).filter(state__in=does).first()
    if known is not None:
        return known
    check_jobs(run.owner)
    quota.check_library(run)
    job = enqueue(Job.Task.COMPILE, run.owner, run=run, network=run.network, target=run.target)
    tell(run, "artifact", state="queued")  # on every page of the run, also where nobody asked for it
    return job
