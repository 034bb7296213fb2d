from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0018_worker"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="measurement",
            index=models.Index(fields=["run", "operator", "seq"], name="measurement_of_operator"),
        ),
    ]
