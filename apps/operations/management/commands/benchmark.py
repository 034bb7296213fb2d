"""`manage.py benchmark speed|latency|methods ... --out DIRECTORY`: comparisons without the web, Redis or a database."""

from apps.operations.headless import HeadlessCommand


class Command(HeadlessCommand):
    help = "Compares tuning speed and latency with TVM's own tuning, ONNX Runtime and PyTorch; --help says how."
