"""One batch of one job, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import DataError, IntegrityError, ProgrammingError, transaction

from apps.core.errors import NoRoom, Refused
from apps.tuning.journal.answers import Answers
from apps.tuning.journal.archives import archives_of
from apps.tuning.journal.beside import BesideRecorder
from apps.tuning.journal.recorder import Recorder
from apps.tuning.journal.tune import TuneRecorder
from apps.tuning.leases import Claim
from apps.tuning.models import Job, TuningRun
from workers.messages.events import Event as Told

MALFORMED = (
    KeyError, TypeError, ValueError, OverflowError, AttributeError, DataError, IntegrityError, ProgrammingError,
)  # fmt: skip


def write(held: Claim, events: Sequence[Told]) -> None:
    """Keeps a batch; what of it is there already is passed over. Raises LeaseLost, or Refused for what is no
    event: then nothing of the batch is kept.

    An answer whose file its owner has no room for is left out, with what was measured of that file, and the job told why:
    another attempt would make the same one.
    """
    try:
        try:
            _write(held, events)
        except NoRoom as full:
            told = {
                "error": f"there is no room for it: {full.reason}",
                "next_step": f"{full.next_step}, then try again",
            }
            others = [event for event in events if event["kind"] not in ("result", "end_to_end")]
            _write(held, others, answered=True, **told)
    except MALFORMED as error:
        raise Refused(
            "event", f"it cannot be kept ({type(error).__name__}: {error})", "report it with the log"
        ) from error


def _write(held: Claim, events: Sequence[Told], **changes: Any) -> None:
    archives = archives_of(held, events)
    with transaction.atomic():
        held.fenced(**changes)
        _recorder(held).record(events, archives)


def _recorder(held: Claim) -> Recorder:
    job = Job.objects.get(pk=held.job_id)
    if held.task == Job.Task.TUNE:
        return TuneRecorder(held, TuningRun.objects.only("pk", "job_id").get(job=job))
    if held.task in (Job.Task.COMPILE, Job.Task.BASELINE):
        assert job.run is not None
        return BesideRecorder(held, job.run)
    return Answers(held, job)
