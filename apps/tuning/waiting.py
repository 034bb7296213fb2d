"""What a queued run waits for: those before it on the queue that times kernels, and a worker at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.core import clock
from apps.tuning.dispatch import ROUTES
from apps.tuning.live import eta
from apps.tuning.models import Job, Outbox, TuningRun
from apps.tuning.reconcile import PATIENCE
from apps.tuning.states import ACTIVE, HELD, State
from workers.messages.names import QUEUE_MEASURE

_READ = ("task", "state", "attempt", "lease_until", "created")
_LIMITS = ("job", "budget_seconds", "budget_trials", "clock", "trials")


@dataclass(frozen=True)
class Wait:
    """`before`: runs that come first, whosever they are; `seconds`: until they are over, None where a limit does not tell;
    `answered`: whether a worker has something, or may not have got the message yet."""

    before: int
    seconds: float | None
    answered: bool


def waits(now: datetime | None = None) -> dict[Any, Wait]:
    """Of every queued run but those that wait for their next attempt, by the key of its job; in two queries at most.

    In the order in which they were asked for: of one that was resumed nobody knows its place among the messages.
    """
    now = now or clock.now()
    tasks = [task for task, (queue, _) in ROUTES.items() if queue == QUEUE_MEASURE]
    rows = Job.objects.filter(task__in=tasks, state__in=ACTIVE).order_by("created").select_related("tuning_run")
    jobs = list(rows.only(*_READ, *(f"tuning_run__{name}" for name in _LIMITS)))
    held = [job for job in jobs if job.state in HELD]
    line = [job for job in jobs if job.state not in HELD]
    asked = {} if held else dict(Outbox.objects.filter(job__in=line).values_list("job", "created"))
    first, found = _runs(held), dict[Any, Wait]()
    for job in line:
        late = now - (asked.get(job.pk, now) if job.attempt else job.created) > PATIENCE
        if job.task == Job.Task.TUNE and job.state == State.QUEUED and not (job.again and job.again > now):
            left = [eta(run) for run in first]
            known = [seconds for seconds in left if seconds is not None]
            found[job.pk] = Wait(
                before=len(first),
                seconds=sum(known) if len(known) == len(left) else None,
                answered=bool(held) or not late,
            )
        first += _runs([job])
    return found


def _runs(jobs: list[Job]) -> list[TuningRun]:
    """A machine that is measured is a job without a run."""
    return [job.tuning_run for job in jobs if job.task == Job.Task.TUNE]
