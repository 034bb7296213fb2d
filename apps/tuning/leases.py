"""A worker's hold on a job: claim, heartbeat, conclude. Everything under a fence that grows with every claim."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Greatest

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.tuning import dispatch, orders
from apps.tuning.models import Job, TuningRun
from apps.tuning.requests import compile_if_measured
from apps.tuning.states import HELD, State
from apps.tuning.transitions import move, tell
from workers.messages import Event
from workers.messages.channel import Control

LEASE = timedelta(seconds=30)
RENEWAL = timedelta(seconds=5)
PAUSES = (timedelta(seconds=10), timedelta(seconds=60))
"""Between attempts that got nowhere: what passes, as a full disk or memory that others hold, takes time to pass."""
ATTEMPTS = 1 + len(PAUSES)
"""Attempts in a row without a new measurement after which a job fails."""
LOG_TAIL = 20_000


class LeaseLost(Exception):
    """Somebody else owns the job now: nothing more may be written for it."""


@dataclass
class Claim:
    """One worker's hold on one job, good as long as no fence is higher. `renewed`: when the lease was last renewed."""

    job_id: uuid.UUID
    fence: int
    task: str
    renewed: datetime

    def order(self) -> dict[str, Any]:
        """What the child is told to do, made from what is saved now."""
        return orders.order(self.job_id, self.task, self.work_dir)

    @property
    def work_dir(self) -> Path:
        """The child's directory, made by `order`, removed when the job is over."""
        return Path(settings.DATA_DIR) / "work" / str(self.job_id)

    def held(self) -> QuerySet[Job]:
        """The job's row while the claim is good, else none."""
        return Job.objects.filter(pk=self.job_id, fence=self.fence, state__in=HELD)

    def fenced(self, **changes: Any) -> None:
        """The UPDATE that begins every writing transaction; raises LeaseLost, and locks the row otherwise."""
        if not self.held().update(**(changes or {"fence": F("fence")})):
            raise LeaseLost(f"{self.task} {self.job_id} is no longer this worker's (fence {self.fence})")


def claim(job_id: Any, worker: str, *, now: datetime | None = None) -> Claim | None:
    """The hold on a queued job, or on one whose worker's lease ran out. None: leave it, somebody else has it or it is
    to wait."""
    now = now or clock.now()
    try:
        key = uuid.UUID(str(job_id))
    except ValueError:
        return None
    free = Q(state=State.QUEUED, lease_until=None) | Q(state__in=(State.QUEUED, State.RUNNING), lease_until__lt=now)
    with transaction.atomic():
        if not move(
            key,
            State.RUNNING,
            free & Q(fruitless__lt=ATTEMPTS),
            fence=F("fence") + 1,
            attempt=F("attempt") + 1,
            fruitless=F("fruitless") + 1,  # until a measurement proves otherwise
            lease_until=now + LEASE,
            worker=worker[:200],
            answered=False,
            error="",  # of the attempt before
            next_step="",
            started=Coalesce("started", Value(now)),
        ):
            return None
        job = Job.objects.get(pk=key)
    return Claim(key, job.fence, job.task, now)


def heartbeat(held: Claim, *, now: datetime | None = None) -> Control:
    """Renews the lease, at most every 5 s, and returns what the user wants; raises LeaseLost."""
    now = now or clock.now()
    if now - held.renewed >= RENEWAL:
        held.fenced(lease_until=now + LEASE)
        held.renewed = now
    wanted = held.held().values_list("wanted", flat=True).first()
    if wanted is None:
        raise LeaseLost(f"{held.task} {held.job_id} is no longer this worker's (fence {held.fence})")
    return "stop" if wanted in ("stop", "keep") else "pause" if wanted == "pause" else "continue"


def conclude(
    held: Claim, kind: str, detail: str = "", log: str = "", last: Event | None = None, *, now: datetime | None = None
) -> State | None:
    """Gives the job back after an attempt that ended as `kind` (workers.supervision.ports.EndingKind, or "interrupted"
    for a worker that is shut down). Returns the new state, None when the lease was lost meanwhile.
    """
    if kind == "lost":
        return None
    with transaction.atomic():
        try:
            held.fenced(log=_plain(log)[-LOG_TAIL:], lease_until=None, worker="")
        except LeaseLost:
            return None
        job = Job.objects.get(pk=held.job_id)
        if _gave_nothing(job, kind):
            return over(job, State.FAILED, error=f"the process that was to {_WORK[job.task]} ended without a result",
                        next_step="try again; if that does not help, look at the log of the worker")  # fmt: skip
        if kind == "finished" or (job.answered and kind in ("crashed", "stopped", "paused")):
            return answered(job, reason=_plain((last or {}).get("reason", "")))
        if kind == "failed":
            told = last or {}
            reason = _plain(told.get("reason") or detail)[:4000]
            return over(job, State.FAILED, error=reason, next_step=_plain(told.get("next_step", ""))[:4000])
        if kind == "stopped":
            return over(job, State.DONE, reason="stopped")
        return abandoned(job, _plain(detail), kind, now=now)


_WORK = {
    "inspect": "read the network", "convert": "convert the network", "hardware": "measure the machine",
    "compile": "compile the best so far", "baseline": "measure the baselines",
}  # fmt: skip


def _gave_nothing(job: Job, kind: str) -> bool:
    """A short task is over when its result is kept: the code of an uploaded file may end it in any other way.

    Of a pause or stop that nobody asked for that holds too: it would be queued again without end.
    """
    asked = job.state == State.STOPPING or job.wanted != Job.Wanted.CONTINUE
    silent = kind == "finished" or (kind in ("paused", "stopped") and not asked)
    return job.task != Job.Task.TUNE and not job.answered and silent


def _plain(said: object) -> str:
    """As the database takes it: a child may say anything, half characters and NUL too."""
    return str(said).encode(errors="replace").decode().replace("\0", "")


def answered(job: Job, reason: str = "") -> State:
    """Inside a transaction: the job is done, or has failed where its result could not be kept: then `error` says why."""
    if job.error:
        return over(job, State.FAILED, error=job.error, next_step=job.next_step)
    return over(job, State.DONE, reason=reason)


def abandoned(job: Job, detail: str, kind: str, *, now: datetime | None = None) -> State:
    """Inside a transaction: an attempt ended without a result, as `kind` ("expired": with its worker). Goes on as the user
    wants, after a pause where it crashed and got nowhere, or fails. Who waited for a lease to run out has waited enough.
    """
    if job.state == State.STOPPING or job.wanted in ("stop", "keep"):
        return over(job, State.DONE, reason="stopped")
    if job.wanted == "pause":
        return over(job, State.PAUSED, fruitless=0)
    if kind == "interrupted":
        move(job.pk, State.INTERRUPTED, fruitless=Greatest(F("fruitless") - 1, 0))
        return State.INTERRUPTED
    if kind == "paused":
        changes: dict[str, Any] = {"fruitless": 0}
    elif job.fruitless >= ATTEMPTS:
        reason = f"{ATTEMPTS} attempts in a row got nowhere; the last one: {detail}"
        again = "look at the log; resume to try again" if job.task == Job.Task.TUNE else "ask for it again"
        return over(job, State.FAILED, error=reason, next_step=again)
    elif kind == "crashed" and job.fruitless:
        error = f"attempt {job.fruitless} of {ATTEMPTS} got nowhere: {detail}"[:4000]
        until = (now or clock.now()) + PAUSES[job.fruitless - 1]
        changes = {"lease_until": until, "error": error, "next_step": "wait, it is tried again by itself"}
    else:
        changes = {}
    move(job.pk, State.QUEUED, **changes)
    dispatch.queue(job)
    return State.QUEUED


def over(job: Job, after: State, reason: str = "", error: str = "", next_step: str = "", **changes: Any) -> State:
    """Inside a transaction: the job ends or rests, and what depends on it is told."""
    if reason:
        TuningRun.objects.filter(job=job, finished_reason="").update(finished_reason=reason[:20])
    ended = None if after == State.PAUSED else clock.now()
    moved = move(job.pk, after, error=error, next_step=next_step, ended=ended, wanted="continue", **changes)
    if moved and after == State.FAILED:
        _tell_of_failure(job, error, next_step)
    # Who stops without keeping wants nothing more; the best can still be asked for.
    if moved and job.task == Job.Task.TUNE and after in (State.DONE, State.PAUSED) and job.wanted != "stop":
        compile_if_measured(TuningRun.objects.get(job=job))
    if after != State.PAUSED:
        work = Path(settings.DATA_DIR) / "work" / str(job.pk)
        transaction.on_commit(partial(shutil.rmtree, work, ignore_errors=True))
    return after


def _tell_of_failure(job: Job, error: str, next_step: str) -> None:
    if job.task in (Job.Task.INSPECT, Job.Task.CONVERT):
        rows = Network.objects.filter(jobs=job, state=Network.State.INSPECTING)
        rows.update(state=Network.State.REJECTED, error=error, next_step=next_step)
    elif job.task == Job.Task.HARDWARE:
        failed = Target.objects.filter(jobs=job).exclude(state=Target.State.READY)
        failed.update(state=Target.State.FAILED, error=error, next_step=next_step)
    elif job.task == Job.Task.COMPILE and job.run is not None:
        tell(job.run, "artifact", state="failed", error=error, next_step=next_step)


__all__ = [
    "ATTEMPTS",
    "LEASE",
    "RENEWAL",
    "Claim",
    "LeaseLost",
    "abandoned",
    "answered",
    "claim",
    "conclude",
    "heartbeat",
    "over",
]
