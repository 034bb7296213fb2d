from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tuning', '0010_at_once'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='claimed',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
