"""What a queued job waits for: a run for those before it on the queue that times kernels, and each for a worker at all."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.core import clock
from apps.tuning.models import Job
from apps.tuning.reading import converting
from apps.tuning.reconcile import PATIENCE
from apps.tuning.states import ACTIVE, HELD, State
from apps.tuning.turns import END, MEASURING, PREPARING, TURN, crowding, eta, had
from workers.messages.names import QUEUE_OF, TASKS_OF, THREADS

_READ = ("task", "state", "lease_until", "created", "queued", "owner")
_LIMITS = ("job", "owner", "budget_seconds", "budget_trials", "clock", "trials")


@dataclass(frozen=True)
class Wait:
    """`before`: runs, or of what is no run jobs, that have the machine before, whosever they are; `seconds`: for how long, None
    where a limit does not tell; `answered`: whether a worker has something, or may not have got the message yet; `machine`:
    whether one is being measured, or a device tested, which comes first and takes some seconds."""

    before: int
    seconds: float | None
    answered: bool
    machine: bool = False


def waits(of: Collection[Any], now: datetime | None = None) -> dict[Any, Wait]:
    """Of those of these jobs that are queued runs, but for what waits for its next attempt, by key; in two queries at most.

    Accounts take turns. An account's own come in the order in which they were asked for: of one that was resumed nobody knows
    its place among the messages.
    """
    now = now or clock.now()
    rows = Job.objects.filter(task__in=MEASURING, state__in=ACTIVE).order_by("created").select_related("tuning_run")
    jobs = sorted(
        rows.only(*_READ, *(f"tuning_run__{name}" for name in _LIMITS)), key=lambda job: job.state not in HELD
    )
    held = [job for job in jobs if job.state in HELD]
    line = _Line(
        [job for job in jobs if job.task == Job.Task.TUNE]
    )  # a machine that is measured is a job without a run
    machine = any(job.task == Job.Task.HARDWARE for job in held)
    found = dict[Any, Wait]()
    for job in jobs:
        if (
            job.pk in of
            and job.task == Job.Task.TUNE
            and job.state == State.QUEUED
            and not (job.again and job.again > now)
        ):
            found[job.pk] = Wait(*line.before(job), answered=bool(held) or not _late(job, now), machine=machine)
    return found


def wait_of(job: Job | None, now: datetime | None = None) -> Wait | None:
    """Of a queued job that is no run; None of one that does not wait, and of one that waits for its next attempt."""
    now = now or clock.now()
    if job is None or job.state != State.QUEUED or (job.again and job.again > now):
        return None
    queue = QUEUE_OF[job.task]
    held = Job.objects.filter(task__in=TASKS_OF[queue], state__in=HELD).count()
    second = job.task == Job.Task.CONVERT and converting().filter(owner=job.owner_id).exists()
    second |= job.task in PREPARING and job.owner_id in crowding()
    before = held if second or held >= THREADS[queue] else 0  # else a thread of its worker takes it up at once
    return Wait(before, None, bool(held) or not _late(job, now))


def _late(job: Job, now: datetime) -> bool:
    """Whether its message should have been answered by now: that of an attempt after a pause is sent when that is over."""
    return now - max(job.queued, job.lease_until or job.queued) > PATIENCE


class _Line:
    """Runs that have the machine and, behind them, those that wait; accounts in the order of their turns."""

    def __init__(self, jobs: list[Job]) -> None:
        self._runs: dict[int | None, list[_Left]] = {}
        for job in jobs:
            self._runs.setdefault(job.owner_id, []).append(_Left(job.pk, eta(job.tuning_run)))
        having, turns = {job.owner_id for job in jobs if job.state in HELD}, had(self._runs, MEASURING)
        order = sorted(self._runs, key=lambda owner: (owner not in having, turns[owner]))
        self._rank = {owner: place for place, owner in enumerate(order)}

    def before(self, job: Job) -> tuple[int, float | None]:
        """Runs before this one, and seconds until it has the machine: its account's own to their ends, and of each other
        account a turn for each of theirs, and one more where that one comes first."""
        runs = self._runs[job.owner_id]
        own = runs[: next(place for place, run in enumerate(runs) if run.key == job.pk)]
        count, taken, turns = len(own), 0.0, sum(run.turns for run in own)
        for other, theirs in self._runs.items():
            left = turns + (self._rank[other] < self._rank[job.owner_id]) if other != job.owner_id else 0
            for run in theirs:
                if not left:
                    break
                turns_, seconds = run.first(left)
                count, taken, left = count + 1, taken + seconds, left - turns_
        ends = [run.seconds for run in own]
        return count, None if None in ends else taken + sum(end or 0.0 for end in ends)


@dataclass(frozen=True)
class _Left:
    """A run's job, and seconds to the run's end, None where no limit tells of one."""

    key: Any
    seconds: float | None

    @property
    def turns(self) -> int:
        """Into which that is split while others wait; one where nobody knows."""
        return max(1, math.ceil(((self.seconds or 0.0) - END) / TURN.total_seconds()))

    def first(self, most: int) -> tuple[int, float]:
        """Of so many of its turns: those that there are, and their seconds."""
        if self.seconds is not None and self.turns <= most:
            return self.turns, self.seconds
        return most, most * TURN.total_seconds()
