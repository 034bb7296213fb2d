from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0003_torch_export"),
    ]

    operations = [
        *(
            migrations.AlterField(
                model_name=model,
                name="run",
                field=models.ForeignKey(
                    db_index=False, on_delete=models.CASCADE, related_name=f"{model}s", to="tuning.tuningrun"
                ),
            )
            for model in ("operator", "slot", "measurement", "event")
        ),
        migrations.AddIndex(
            model_name="measurement",
            index=models.Index(fields=["run", "operator", "seconds"], name="measurement_by_speed"),
        ),
    ]
