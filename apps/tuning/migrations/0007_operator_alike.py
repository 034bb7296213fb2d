from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0006_expected_and_knobs"),
    ]

    operations = [
        migrations.AddField(
            model_name="operator",
            name="alike",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
