"""Runs as lists of them are read."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.tuning.models import TuningRun

LONG = (
    "report", "known_from", "started_facts", "job__log", "network__inspection", "target__hardware", "target__tvm",
    "target__versions",
)  # fmt: skip
"""What no list shows: for twenty-five runs it can be megabytes, and the first page asks every few seconds."""


def listed(runs: QuerySet[TuningRun]) -> QuerySet[TuningRun]:
    """With job, network and target, in one query."""
    return runs.select_related("job", "network", "target").defer(*LONG)
