"""Figures that count: a configuration may be measured in several rounds (`workers.messages.believed`)."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from apps.tuning.models import Measurement, TuningRun


def believed(run: TuningRun, operator: int) -> QuerySet[Measurement]:
    """Of the operator of this index what ran and counts, fastest first, of equals the first: what came after its last later
    round, and of what was measured in such rounds the latest."""
    ran = run.measurements.filter(operator=operator, seconds__isnull=False)  # operator by operator, as the index is
    last = max(ran.filter(round__gt=0).order_by().values_list("seq", flat=True), default=0)
    mine = {name: OuterRef(name) for name in ("run", "operator", "configuration")}
    later = Measurement.objects.filter(**mine, round__gt=OuterRef("round"), seconds__isnull=False)
    return ran.filter(Q(seq__gt=last) | Q(round__gt=0) & ~Exists(later)).order_by("seconds", "seq")
