"""`manage.py landscape record|calibrate ... --out DIRECTORY`: measurements of this machine, to compare methods on."""

from apps.operations.headless import HeadlessCommand


class Command(HeadlessCommand):
    help = "Records measurements of this machine for later comparisons of methods; --help says how."
