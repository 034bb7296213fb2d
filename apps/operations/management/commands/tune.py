"""`manage.py tune NETWORK --out DIRECTORY`: tuning without the web, Redis or a database."""

from apps.operations.headless import HeadlessCommand


class Command(HeadlessCommand):
    help = "Tunes an ONNX network on this machine; --help says how."
