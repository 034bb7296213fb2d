from typing import Any

from django.db import migrations, models


def count(apps: Any, schema_editor: Any) -> None:
    """Of operators of which nothing ran: of others nobody asks."""
    Measurement = apps.get_model("tuning", "Measurement")
    for operator in apps.get_model("tuning", "Operator").objects.filter(best_seconds=None).iterator(100):
        found = Measurement.objects.filter(run=operator.run_id, operator=operator.index, cause="duplicate")
        operator.repeated = found.count()
        operator.save(update_fields=["repeated"])


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0014_waited"),
    ]

    operations = [
        migrations.AddField(
            model_name="operator",
            name="repeated",
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.RunPython(count, migrations.RunPython.noop),
    ]
