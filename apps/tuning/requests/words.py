"""Pause, resume, stop, and stop and keep the best."""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.db.models import QuerySet

from apps.core import clock
from apps.core.errors import Refused
from apps.core.full_disk import with_reserve
from apps.tuning import dispatch
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests.artifacts import compile_if_measured, compiling
from apps.tuning.requests.baselines import queue_again
from apps.tuning.requests.limits import check_active
from apps.tuning.requests.queue import AFRESH, end_waiting, locked
from apps.tuning.states import ACTIVE, HELD, OVER, WAITING, State
from apps.tuning.transitions import announce, move

Word = Literal["pause", "resume", "stop", "keep"]


@with_reserve
def request(run: TuningRun, owner: Any, word: Word) -> None:
    """Pause, resume, stop, or stop and keep the best as an artifact. Asking twice is no mistake. On a full disk, too: what
    runs has to end before anything of it can be deleted.

    Raises Refused for what cannot be.
    """
    if word not in _WORDS:
        raise Refused(word, "no such request", "ask for pause, resume, stop or keep")
    with transaction.atomic():
        # In the order in which who has what is beside it locks that job, and then the run's.
        if word in ("pause", "stop"):
            list(Job.objects.select_for_update(no_key=True).filter(run=run).order_by("pk").values_list("pk"))
        row = locked(run, owner)
        if not _WORDS[word](row):
            raise Refused(word, f"it is {row.state}", "reload the page to see what it does now")


def _pause(job: Job) -> bool:
    """What it is compared with waits too: who pauses wants the machine. But not what was asked for again (turns.early)."""
    beside = Job.objects.filter(run__job=job, task=Job.Task.BASELINE)
    if not beside.filter(state__in=OVER).exists():
        for held in beside.filter(state__in=HELD):
            _want(held, "stop")
    if job.state == State.RUNNING:
        return _want(job, "pause")
    if job.state in WAITING:
        return move(job.pk, State.PAUSED, **AFRESH)
    return job.state == State.PAUSED


def _resume(job: Job) -> bool:
    beside = Job.objects.filter(run__job=job)
    if job.state == State.RUNNING and job.wanted == Job.Wanted.PAUSE:
        _want(job, "continue")
        queue_again(beside)
        return True
    if job.state in (State.PAUSED, State.FAILED):
        check_active(job.owner, job)
        TuningRun.objects.filter(job=job).update(finished_reason="")
        moved = move(job.pk, State.QUEUED, wanted="continue", fruitless=0, ended=None, **AFRESH)
        dispatch.queue(job)
        queue_again(beside)
        return moved
    return job.state in ACTIVE and job.state != State.STOPPING


def _stop(job: Job) -> bool:
    beside = Job.objects.filter(run__job=job)
    if job.state in OVER:
        if _withdraw(beside.filter(task=Job.Task.COMPILE)):
            return True
        if not _stopped(job):  # compared with others all the same, if it failed when it goes on
            return job.state == State.FAILED
    elif job.state == State.STOPPING:
        _want(job, "stop")
    elif not _end(job):
        return False
    # Of these nobody else needs any: other runs of the same work have jobs for their baselines themselves.
    end_waiting(beside)
    return True


def _withdraw(libraries: QuerySet[Job]) -> bool:
    """Of a run that is over, what is to be compiled or is being compiled; whether anything is."""
    held = [_want(job, "stop") for job in libraries.filter(state__in=HELD)]
    return end_waiting(libraries) or bool(held)


def _end(job: Job) -> bool:
    if job.state == State.RUNNING:
        return move(job.pk, State.STOPPING, wanted="stop")
    if job.state in (*WAITING, State.PAUSED):
        TuningRun.objects.filter(job=job).update(finished_reason="stopped")
        return move(job.pk, State.DONE, wanted="continue", ended=clock.now(), **AFRESH)
    return False


def _keep(job: Job) -> bool:
    if job.state == State.RUNNING:
        return move(job.pk, State.STOPPING, wanted="keep")
    if job.state == State.STOPPING:  # compiled when what is being measured is kept
        return _want(job, "keep")
    if _end(job):
        compile_if_measured(TuningRun.objects.get(job=job))
        return True
    return _stopped(job) and compiling(job).exists()


def _stopped(job: Job) -> bool:
    """Whether an earlier request ended it."""
    return job.state == State.DONE and TuningRun.objects.filter(job=job, finished_reason="stopped").exists()


_WORDS = {"pause": _pause, "resume": _resume, "stop": _stop, "keep": _keep}


def _want(job: Job, word: str) -> bool:
    if Job.objects.filter(pk=job.pk).exclude(wanted=word).update(wanted=word):
        announce(job.pk)
    return True
