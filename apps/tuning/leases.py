"""A worker's hold on a job: claim, heartbeat, conclude. Everything under a fence that grows with every claim."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from apps.catalog.models import Network, Target
from apps.core import clock
from apps.core.full_disk import with_reserve
from apps.tuning import dispatch, orders, turns
from apps.tuning.endings import After, after, plain
from apps.tuning.models import Job, TuningRun
from apps.tuning.reading import next_read, second
from apps.tuning.requests.artifacts import being_compiled, compile_if_measured
from apps.tuning.requests.baselines import being_taken, queue_again, taken_later, taken_meanwhile, waiting_for
from apps.tuning.states import HELD, OVER, State
from apps.tuning.sweep import discard
from apps.tuning.transitions import move, tell
from workers.messages.channel import LeaseLost, Wish
from workers.messages.events import Event
from workers.messages.names import ATTEMPTS, QUEUE_OF, READING, TASKS_OF

LEASE = timedelta(seconds=30)
RENEWAL = timedelta(seconds=5)
LOG_TAIL = 20_000


@dataclass
class Claim:
    """One worker's hold on one job `since` then, good as long as no fence is higher. `renewed`: when the lease was last
    renewed."""

    job_id: uuid.UUID
    fence: int
    task: str
    since: datetime
    renewed: datetime

    def order(self) -> dict[str, Any]:
        """What the child is told to do, made from what is saved now. What an earlier attempt left is removed: its child may not
        know yet that it is nobody's, and must not write among ours."""
        if (job := self.work_dir.parent).exists():
            for left in job.iterdir():
                number = left.name.partition(".")[0]
                if not number.isdigit() or int(number) < self.fence:
                    discard(left)
        return orders.order(self.job_id, self.task, self.work_dir)

    @property
    def work_dir(self) -> Path:
        """The directory of this attempt's child, made by `order`, removed with the job's when that is over."""
        return Path(settings.DATA_DIR) / "work" / str(self.job_id) / str(self.fence)

    def held(self) -> QuerySet[Job]:
        """The job's row while the claim is good, else none."""
        return Job.objects.filter(pk=self.job_id, fence=self.fence, state__in=HELD)

    def fenced(self, **changes: Any) -> None:
        """The UPDATE that begins every writing transaction; raises LeaseLost, and locks the row otherwise."""
        if not self.held().update(**(changes or {"fence": F("fence")})):
            raise LeaseLost(f"{self.task} {self.job_id} is no longer this worker's (fence {self.fence})")


def claim(job_id: Any, *, now: datetime | None = None) -> Claim | None:
    """The hold on a queued job, or on one whose worker's lease ran out. None: leave it, somebody else has it, it is to wait,
    or what it should find is known by now.

    Where the job reads a file, `claim_read` finds that whose turn it is, and otherwise `next_asked`.
    """
    now = now or clock.now()
    try:
        key = uuid.UUID(str(job_id))
    except ValueError:
        return None
    task = Job.objects.filter(pk=key).values_list("task", flat=True).first()
    if task in READING:
        return claim_read(now=now)
    if task == Job.Task.BASELINE and turns.early(now).filter(_ready(now), pk=key).exists():
        return _claimed(key, now)  # takes lines that another run has, at most, which costs nobody a turn
    tasks = TASKS_OF[QUEUE_OF[task]] if task else ()
    # Not one of these after the other: of baselines of paused runs alone each account may have a hundred.
    ready = _ready(now) & ~turns.held_up(now) if task in turns.PREPARING else _ready(now)
    return _claim_next(lambda left: turns.next_asked(key, ready & ~Q(pk__in=left), tasks), now, key)


def claim_read(*, now: datetime | None = None) -> Claim | None:
    """The hold on the uploaded file that is to be read next. None where none is."""
    now = now or clock.now()
    return _claim_next(lambda left: next_read(_ready(now) & ~Q(pk__in=left)), now)


def _claim_next(turn: Callable[[set[Any]], Any], now: datetime, asked: Any = None) -> Claim | None:
    """That whose `turn` it is, of what is not left. Another worker may have been quicker; what waits for something else is
    left, and what was `asked` for then has had its message."""
    left, last = set[Any](), None
    while (key := turn(left)) not in (None, last):
        if held := _claimed(key, now):
            return held
        if key == asked:
            last = key
        else:
            left.add(key)
    return None


def _ready(now: datetime) -> Q:
    # Whose worker answered before it went away is done: reconcile says so, another attempt would find its result kept.
    gone = Q(state=State.RUNNING, lease_until__lt=now, answered=False)
    return (turns.waiting(now) | gone) & Q(fruitless__lt=ATTEMPTS)


def _claimed(key: uuid.UUID, now: datetime) -> Claim | None:
    ready, asked = _ready(now), Job.objects.select_related("run").filter(pk=key)
    # Looked at before, too: every transaction is a moment in which nobody else may write.
    if (job := asked.first()) is None or _to_wait(job, now):
        return None
    with transaction.atomic():
        if (job := asked.first()) is None or _to_wait(job, now):
            return None
        if job.task == Job.Task.CONVERT and second(job, ready):
            return None
        before = job.claimed
        later = list(turns.early(now).values_list("pk", flat=True)) if job.task == Job.Task.TUNE else []
        if not move(
            key,
            State.RUNNING,
            ready,
            fence=F("fence") + 1,
            attempt=F("attempt") + 1,
            fruitless=F("fruitless") + 1,  # until a measurement proves otherwise
            lease_until=now + LEASE,
            answered=False,
            error="",  # of the attempt before
            next_step="",
            started=Coalesce("started", Value(now)),
            claimed=now,
        ):
            return None
        job.refresh_from_db()
        if job.task == Job.Task.BASELINE and job.run is not None and taken_meanwhile(job.run):
            Job.objects.filter(pk=key).update(claimed=before)  # nobody had anything of the machine
            settle(job, After(State.DONE, 0), now=now)
            return None
        if job.task == Job.Task.TUNE:
            queue_again(Job.objects.filter(pk__in=later).exclude(pk__in=turns.early(now).values("pk")))
    return Claim(key, job.fence, job.task, now, now)


def _to_wait(job: Job, now: datetime) -> bool:
    """Whether it waits for something else: another message is sent when that is over, or by reconcile."""
    if job.task in turns.PREPARING and job.owner_id in turns.crowding(but=job.pk):
        return True
    if job.task == Job.Task.BASELINE:
        return being_taken(job) or taken_later(job, now)
    return being_compiled(job)


def heartbeat(held: Claim, *, now: datetime | None = None) -> Wish:
    """Renews the lease, at most every 5 s, and returns what the user wants, and with a renewal whether others have waited
    long enough; raises LeaseLost."""
    now = now or clock.now()
    # The system's clock may go back: a lease of then would hold too long.
    renews = not timedelta(0) <= now - held.renewed < RENEWAL
    if renews:
        held.fenced(lease_until=now + LEASE)
        held.renewed = now
    job = held.held().only("task", "wanted", "fruitless", "owner").first()
    if job is None:
        raise LeaseLost(f"{held.task} {held.job_id} is no longer this worker's (fence {held.fence})")
    if job.wanted != Job.Wanted.CONTINUE:
        return "pause" if job.wanted == Job.Wanted.PAUSE else "stop"
    return "turn" if renews and turns.over(job, held.since, now) else "continue"


@with_reserve
def conclude(
    held: Claim, kind: str, detail: str = "", log: str = "", last: Event | None = None, *, now: datetime | None = None
) -> State | None:
    """Gives the job back after an attempt that ended as `kind` (endings.after, or "lost"). Returns the new state, None
    when the lease was lost meanwhile. On a full disk too, or nobody learned of what it died.
    """
    if kind == "lost":
        return None
    with transaction.atomic():
        try:
            held.fenced(log=plain(log)[-LOG_TAIL:], lease_until=None)
        except LeaseLost:
            return None
        job = Job.objects.get(pk=held.job_id)
        return settle(job, after(job, kind, detail, last), now=now)


def settle(job: Job, became: After, *, now: datetime | None = None) -> State:
    """Inside a transaction that holds the job's row: an attempt's end, written, and told to what depends on it."""
    over = became.state in OVER
    if became.reason:
        TuningRun.objects.filter(job=job, finished_reason="").update(finished_reason=became.reason[:20])
    moved = move(
        job.pk,
        became.state,
        wanted=Job.Wanted.CONTINUE,
        fruitless=became.fruitless,
        lease_until=(now or clock.now()) + became.pause if became.pause else None,
        error=became.error,
        next_step=became.next_step,
        ended=clock.now() if over else None,
    )
    if moved and became.state == State.QUEUED:
        dispatch.queue(job)
    if moved and became.state == State.FAILED:
        _tell_of_failure(job, became.error, became.next_step)
    # Who stops without keeping wants nothing more, who pauses wants the machine; the best can still be asked for.
    if moved and job.task == Job.Task.TUNE and became.state == State.DONE and job.wanted != Job.Wanted.STOP:
        compile_if_measured(TuningRun.objects.get(job=job))
    if over:
        work = Path(settings.DATA_DIR) / "work" / str(job.pk)
        transaction.on_commit(partial(discard, work))
        for waiting in waiting_for(job):
            dispatch.queue(waiting)
    return became.state


def _tell_of_failure(job: Job, error: str, next_step: str) -> None:
    if job.task in (Job.Task.INSPECT, Job.Task.CONVERT):
        rows = Network.objects.filter(jobs=job, state=Network.State.INSPECTING)
        rows.update(state=Network.State.REJECTED, error=error, next_step=next_step)
    elif job.task == Job.Task.HARDWARE:
        # What is known of this machine stays in use; a device that does not answer is not offered.
        tested = Target.objects.filter(jobs=job)
        failed = tested.exclude(kind=Target.LOCAL, state=Target.State.READY).exclude(
            ~Q(new_key=""), state=Target.State.READY
        )
        failed.update(state=Target.State.FAILED, error=error, next_step=next_step)
        tested.update(new_key="")
    elif job.task == Job.Task.BASELINE and job.run is not None:
        text = f"what the run is compared with was not measured: {error}. Next step: {next_step}"
        tell(job.run, "log", level="warning", text=text, uncompared=True)  # its page offers to measure it again
    elif job.task == Job.Task.COMPILE and job.run is not None:
        tell(job.run, "artifact", state="failed", error=error, next_step=next_step)
        tell(job.run, "log", level="warning", text=f"there is no library: {error}. Next step: {next_step}")
