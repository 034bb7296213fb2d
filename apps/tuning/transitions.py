"""The one way a job changes its state: a conditional UPDATE, told to whoever watches."""

from __future__ import annotations

from typing import Any

from django.db.models import F, Q

from apps.core import clock
from apps.core.ids import digest
from apps.tuning import doorbell
from apps.tuning.models import Event, Job, TuningRun
from apps.tuning.states import State, before


class Numbers:
    """The counter of a run's events and measurements. Making it locks the run until the transaction ends."""

    def __init__(self, run_job_id: Any) -> None:
        self._row = Job.objects.filter(pk=run_job_id)
        self._row.update(last_seq=F("last_seq"))
        self.last: int = self._row.values_list("last_seq", flat=True).get()

    def next(self) -> int:
        self.last += 1
        return self.last

    def save(self) -> None:
        self._row.update(last_seq=self.last)


def move(job_id: Any, after: State, when: Q | None = None, **changes: Any) -> bool:
    """Inside a transaction. False when the job is in no state that may become `after`, or `when` does not hold."""
    rows = Job.objects.filter(when or Q(), pk=job_id, state__in=before(after))
    if after == State.QUEUED:
        changes["queued"] = clock.now()
    if not rows.update(state=after, **changes):
        return False
    announce(job_id)
    return True


def announce(job_id: Any) -> None:
    """Inside a transaction: an event with the state of a tuning job; other jobs have no viewers."""
    job = Job.objects.get(pk=job_id)
    run = TuningRun.objects.filter(job=job).first()
    if run is None:
        return
    told = {name: getattr(job, name) for name in ("state", "wanted", "attempt", "error", "next_step")}
    tell(run, "state", **told, again=job.again and job.again.timestamp(), finished_reason=run.finished_reason)


def tell(run: TuningRun, kind: str, **payload: Any) -> None:
    """Inside a transaction: one event of the site's own."""
    numbers = Numbers(run.job_id)
    seq = numbers.next()
    payload = {"kind": kind, "seq": seq, "clock": run.clock, **payload}
    Event.objects.create(
        run=run, seq=seq, kind=kind, clock=run.clock, payload=payload, digest=digest("site", str(run.pk), seq)
    )
    numbers.save()
    doorbell.ring_after_commit(run.pk, seq)
