"""What a run is compared with: taken once of equal work on the same machine, and shared by the runs that do it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.core.errors import Refused
from apps.tuning import dispatch, turns
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.limits import check_jobs
from apps.tuning.requests.queue import enqueue, locked
from apps.tuning.states import ACTIVE, HELD, State
from apps.tuning.transitions import tell
from workers.messages.baselines import complete


def find_baselines(run: TuningRun) -> None:
    """Inside a transaction: baselines of an earlier run, or a job that takes them. On a device elsewhere ONNX
    Runtime is asked with the library, if at all."""
    if run.target.device:
        return
    if not taken_meanwhile(run):
        enqueue(Job.Task.BASELINE, run.owner, run=run, network=run.network, target=run.target)


def request_baselines(run: TuningRun, owner: Any) -> None:
    """Takes them again where that failed. Raises Refused, also where the machine is another by now."""
    with transaction.atomic():
        locked(run, owner)
        run = TuningRun.objects.select_related("target", "network").get(pk=run.pk)
        if (run.machine_name, run.machine["tvm"]) != (run.target.name, run.target.tvm):
            reason = f"it was made on {run.machine_name}, and the machine is {run.target.name} by now"
            raise Refused(run.network.name, reason, "start another run")
        if (
            not complete(run.baselines)
            and not Job.objects.filter(run=run, task=Job.Task.BASELINE, state__in=ACTIVE).exists()
        ):
            check_jobs(run.owner)
            find_baselines(run)


def being_taken(job: Job) -> bool:
    """Whether another run's job is at what this one should take: it is to wait for those lines."""
    jobs = Job.objects.filter(task=Job.Task.BASELINE, state__in=HELD, network=job.network_id, target=job.target_id)
    others = jobs.exclude(pk=job.pk).select_related("run")
    return job.run is not None and any(other.run and _work(other.run) == _work(job.run) for other in others)


def taken_later(job: Job, now: datetime) -> bool:
    """Whether `job` would hold up others before its run's turn has come (turns.early). Lines that another run has do not."""
    return turns.early(now).filter(pk=job.pk).exists() and not (job.run and _known(job.run))


def queue_again(jobs: QuerySet[Job]) -> None:
    """Inside a transaction: messages for what was to be `taken_later` and waits no longer."""
    for job in jobs.filter(task=Job.Task.BASELINE, state=State.QUEUED):
        dispatch.queue(job)


def waiting_for(job: Job) -> QuerySet[Job]:
    """Jobs that may have been told to wait for `job`: baselines that it has or cannot take, a later library of its run, and
    those of its account that left a place to others (turns.crowding)."""
    same: dict[str, Any] = {
        Job.Task.BASELINE: {"network": job.network_id, "target": job.target_id},
        Job.Task.COMPILE: {"run": job.run_id},
    }
    if job.task not in same:
        return Job.objects.none()
    own = Q(owner=job.owner_id, task__in=turns.PREPARING)
    return Job.objects.filter(Q(task=job.task, **same[job.task]) | own, state=State.QUEUED)


def taken_meanwhile(run: TuningRun) -> bool:
    """Inside a transaction: gives it the lines that another run has by now; False where there are none."""
    lines = _known(run)
    for line in lines:
        tell(run, "baseline", **line)
    if lines:  # told first: whoever saves a run holds its numbers
        TuningRun.objects.filter(pk=run.pk).update(baselines=lines)
        run.baselines = lines
    return bool(lines)


def _known(run: TuningRun) -> list[dict[str, Any]]:
    """Of the latest other run of the same work on the same machine that has all of them."""
    runs: QuerySet[TuningRun] = TuningRun.objects.filter(network=run.network_id, target=run.target_id)
    # Compared here: whether two JSON columns are equal, whatever the order of their keys, not every database can tell.
    latest = runs.exclude(pk=run.pk).exclude(baselines=[]).order_by("-created").iterator(100)
    # Complete: not while they are being taken, nor where one failed, which a later run tries again.
    found = next((row for row in latest if complete(row.baselines) and _work(row) == _work(run)), None)
    return found.baselines if found is not None else []


def _work(run: TuningRun) -> tuple[Any, ...]:
    """What a baseline's time depends on; a peak that was measured anew changes nothing."""
    machine = run.machine_name, run.machine["threads"], run.machine["tvm"], run.machine.get("versions")
    return run.shapes, *machine
