from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("tuning", "0015_repeated"),
    ]

    operations = [
        migrations.RemoveField(model_name="checkpoint", name="seq"),
        migrations.RemoveField(model_name="outbox", name="created"),
        migrations.RemoveField(model_name="outbox", name="queue"),
    ]
