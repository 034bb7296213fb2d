"""Figures that count: a configuration may be measured in several rounds, and the latest one is believed."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, QuerySet

from apps.tuning.models import Measurement, TuningRun


def settled(run: TuningRun) -> QuerySet[Measurement]:
    """What ran and was not measured again, fastest first, of equals the first."""
    mine = {name: OuterRef(name) for name in ("run", "operator", "configuration")}
    later = Measurement.objects.filter(**mine, round__gt=OuterRef("round"), seconds__isnull=False)
    ran = run.measurements.filter(seconds__isnull=False)
    return ran.filter(~Exists(later)).order_by("seconds", "seq")
