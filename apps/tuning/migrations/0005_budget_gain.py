from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0004_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="tuningrun",
            name="budget_gain",
            field=models.FloatField(blank=True, null=True),
        ),
    ]
