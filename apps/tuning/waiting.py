"""What a queued job waits for: a run for those before it on the queue that times kernels, and each for a worker at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.core import clock
from apps.tuning.models import Job, Outbox
from apps.tuning.reading import converting
from apps.tuning.reconcile import PATIENCE
from apps.tuning.states import ACTIVE, HELD, State
from apps.tuning.turns import MEASURING, eta, turn_of
from workers.messages.names import QUEUE_OF, TASKS_OF, THREADS

_READ = ("task", "state", "attempt", "lease_until", "created", "owner")
_LIMITS = ("job", "owner", "budget_seconds", "budget_trials", "clock", "trials")


@dataclass(frozen=True)
class Wait:
    """`before`: runs, or of what is no run jobs, that come first, whosever they are; `seconds`: until they are over, None where
    a limit does not tell; `answered`: whether a worker has something, or may not have got the message yet."""

    before: int
    seconds: float | None
    answered: bool


def waits(now: datetime | None = None) -> dict[Any, Wait]:
    """Of every queued run but those that wait for their next attempt, by the key of its job; in two queries at most.

    In the order in which they were asked for: of one that was resumed nobody knows its place among the messages.
    """
    now = now or clock.now()
    rows = Job.objects.filter(task__in=MEASURING, state__in=ACTIVE).order_by("created").select_related("tuning_run")
    jobs = list(rows.only(*_READ, *(f"tuning_run__{name}" for name in _LIMITS)))
    held = [job for job in jobs if job.state in HELD]
    line = [job for job in jobs if job.state not in HELD]
    asked = {} if held else dict(Outbox.objects.filter(job__in=line).values_list("job", "created"))
    ahead, found = _Ahead(held), dict[Any, Wait]()
    for job in line:
        late = _late(job, asked.get(job.pk, now), now)
        if job.task == Job.Task.TUNE and job.state == State.QUEUED and not (job.again and job.again > now):
            found[job.pk] = Wait(ahead.runs, ahead.seconds(job.owner_id), answered=bool(held) or not late)
        ahead.add(job)
    return found


def wait_of(job: Job | None, now: datetime | None = None) -> Wait | None:
    """Of a queued job that is no run; None of one that does not wait, and of one that waits for its next attempt."""
    now = now or clock.now()
    if job is None or job.state != State.QUEUED or (job.again and job.again > now):
        return None
    queue = QUEUE_OF[job.task]
    held = Job.objects.filter(task__in=TASKS_OF[queue], state__in=HELD).count()
    asked = Outbox.objects.filter(job=job).values_list("created", flat=True).first()
    second = job.task == Job.Task.CONVERT and converting().filter(owner=job.owner_id).exists()
    before = held if second or held >= THREADS[queue] else 0  # else a thread of its worker takes it up at once
    return Wait(before, None, bool(held) or not _late(job, asked or now, now))


def _late(job: Job, asked: datetime, now: datetime) -> bool:
    """Whether its message, of a later attempt that which was `asked` for then, should have been answered by now."""
    return now - (asked if job.attempt else job.created) > PATIENCE


class _Ahead:
    """The runs that come before, as sums: each of hundreds that wait is told of all before it."""

    def __init__(self, held: list[Job]) -> None:
        self.runs = 0
        self._turns = 0.0
        self._own: dict[int | None, _Own] = {}
        for job in held:
            self.add(job)

    def add(self, job: Job) -> None:
        """A machine that is measured is a job without a run."""
        if job.task != Job.Task.TUNE:
            return
        turn, left = turn_of(job.tuning_run), eta(job.tuning_run)
        own = self._own.setdefault(job.owner_id, _Own())
        self.runs, self._turns = self.runs + 1, self._turns + turn
        own.turns += turn
        own.left = None if own.left is None or left is None else own.left + left

    def seconds(self, owner: int | None) -> float | None:
        """Until they are over for what is this `owner`'s, whose own runs do not give the machine up to it."""
        own = self._own.get(owner, _Own())
        return None if own.left is None else self._turns - own.turns + own.left


@dataclass
class _Own:
    """Of one account: seconds of its runs' turns, and to their ends, None where no limit tells of one."""

    turns: float = 0.0
    left: float | None = 0.0
