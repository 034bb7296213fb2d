from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0017_turns"),
    ]

    operations = [
        migrations.RemoveField(model_name="job", name="worker"),
    ]
