from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0009_believed"),
    ]

    operations = [
        migrations.AddField(
            model_name="operator",
            name="at_once",
            field=models.PositiveSmallIntegerField(default=1),
        ),
    ]
