from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0005_budget_gain"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuningrun",
            name="expected",
            field=models.JSONField(blank=True, default=dict),
        ),
        migrations.AddField(
            model_name="operator",
            name="knobs",
            field=models.JSONField(blank=True, default=list),
        ),
    ]
