"""Turns of the machine: a run that had it for long gives it up while somebody else waits for it, and waits behind them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from apps.tuning.dispatch import ROUTES
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import State
from workers.messages.names import QUEUE_MEASURE

TURN = timedelta(minutes=10)
"""What a form offers first. In the first half a minute nothing is measured: the network is imported again."""
END = 120.0
"""Seconds that a run may have left to be let come to its end."""
MEASURING = [task for task, (queue, _) in ROUTES.items() if queue == QUEUE_MEASURE]


def over(job: Job, since: datetime, now: datetime) -> bool:
    """Whether a run that has had the machine `since` then is to give it up. Not before it has measured something: the next
    attempt would begin where this one did. A clock that went back ends a turn early, not never."""
    if job.task != Job.Task.TUNE or job.fruitless or timedelta(0) <= now - since < TURN:
        return False
    left = eta(TuningRun.objects.get(job=job))
    return (left is None or left > END) and waiting(now).exclude(owner=job.owner_id).exists()


def waiting(now: datetime) -> QuerySet[Job]:
    """Jobs that would have the machine at once."""
    ready = Q(lease_until=None) | Q(lease_until__lt=now)
    return Job.objects.filter(ready, state=State.QUEUED, task__in=MEASURING)


def turn_of(run: TuningRun, owner: int | None) -> float | None:
    """Seconds for which a run keeps the machine from what is this `owner`'s; None where no limit tells."""
    left = eta(run)
    if run.owner_id == owner:
        return left
    return TURN.total_seconds() if left is None else min(left, TURN.total_seconds() + END)


def eta(run: TuningRun) -> float | None:
    """Seconds of tuning until the first limit of time or trials at the pace so far; None without one."""
    left = []
    if run.budget_seconds is not None:
        left.append(run.budget_seconds - run.clock)
    if run.budget_trials is not None and run.trials:
        left.append((run.budget_trials - run.trials) * run.clock / run.trials)
    return max(0.0, min(left)) if left else None
