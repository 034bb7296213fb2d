"""`manage.py tune NETWORK --out DIRECTORY`: tuning without the web, Redis or a database."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Tunes an ONNX network on this machine; --help says how."
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def run_from_argv(self, argv: list[str]) -> None:
        """Becomes `python -m workers.headless tune` with the same arguments, in the same directory."""
        paths = [str(settings.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.execv(sys.executable, [sys.executable, "-m", "workers.headless", "tune", *argv[2:]])

    def handle(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError("tune is started from a command line only")
