"""`manage.py control DIRECTORY pause|stop`: speaks to a run that `manage.py tune` started."""

from apps.operations.headless import HeadlessCommand


class Command(HeadlessCommand):
    help = "Pauses or stops a run that tune started; tune --resume goes on."
