"""`manage.py landscape record NETWORK --kind curve|space --out DIRECTORY`: measurements to compare methods on."""

from apps.operations.headless import HeadlessCommand


class Command(HeadlessCommand):
    help = "Records measurements of this machine for later comparisons of methods; --help says how."
