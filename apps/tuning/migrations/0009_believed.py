"""Of runs of before, too, what was not measured again counts no longer: their own pages draw their curves so. What was told while
they ran stays as it was told."""

from typing import Any

from django.db import migrations
from django.db.models import Exists, OuterRef, Q


def retell(apps: Any, schema_editor: Any) -> None:
    """Bests and latencies as `apps.tuning.rounds` tells them."""
    runs, measurements = apps.get_model("tuning", "TuningRun"), apps.get_model("tuning", "Measurement")
    again = measurements.objects.filter(round__gt=0, seconds__isnull=False).order_by()
    for run in runs.objects.filter(pk__in=again.values("run").distinct()):
        operators = list(run.operators.order_by("index"))
        for operator in operators:
            ran = measurements.objects.filter(run=run, operator=operator.index, seconds__isnull=False)
            last = max(ran.filter(round__gt=0).order_by().values_list("seq", flat=True), default=0)
            same = {name: OuterRef(name) for name in ("run", "operator", "configuration")}
            later = measurements.objects.filter(**same, round__gt=OuterRef("round"), seconds__isnull=False)
            counts = ran.filter(Q(seq__gt=last) | Q(round__gt=0) & ~Exists(later))
            operator.best_seconds = counts.order_by("seconds", "seq").values_list("seconds", flat=True).first()
            operator.save(update_fields=["best_seconds"])
        if all(operator.best_seconds is not None for operator in operators):
            run.latency = sum(operator.weight * operator.best_seconds for operator in operators)
            run.save(update_fields=["latency"])


class Migration(migrations.Migration):
    dependencies = [("tuning", "0008_deleted")]
    operations = [migrations.RunPython(retell, migrations.RunPython.noop)]
