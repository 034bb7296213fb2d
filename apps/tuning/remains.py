"""What users deleted, and is nobody's: it goes from the database in small steps, so that no other writer waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from apps.catalog.models import Network
from apps.core.full_disk import with_reserve
from apps.tuning.models import Event, Job, Measurement, Operator, Slot, TuningRun

STEP = 1000
"""Rows of a transaction."""
LONG = 3.0
"""s that all of it may take at a time."""


def clear(seconds: float = LONG) -> int:
    """Deletes for about so long. Returns how many steps it took; the rest is for the next time."""
    count, end = 0, time.monotonic() + seconds
    for rows in _steps():
        began = time.monotonic()
        _delete(rows)
        count += 1
        took = time.monotonic() - began
        if began + took > end:
            break
        time.sleep(took)  # who waits for SQLite's lock looks now and then only
    return count


@with_reserve
def _delete(rows: QuerySet[Any]) -> None:
    rows.delete()


def _steps() -> Iterator[QuerySet[Any]]:
    """What to delete next, each when the one before is deleted: a run's rows, then the run, at last its network."""
    for network in Network.objects.filter(owner=None):
        for run in TuningRun.objects.filter(network=network).only("job"):
            for model in (Measurement, Event, Slot, Operator):
                rows: QuerySet[Any] = model._default_manager.filter(run=run).order_by()
                while rows.exists():
                    yield model._default_manager.filter(pk__in=rows.values("pk")[:STEP])
            yield Job.objects.filter(pk=run.job_id)
        yield Network.objects.filter(pk=network.pk)
