"""Commands that are the headless product's: started by name, because this side loads no tuning library."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class HeadlessCommand(BaseCommand):
    """Becomes `python -m workers.headless` with the same command line, in the same directory; no database is touched."""

    program = "workers.headless"
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def run_from_argv(self, argv: list[str]) -> None:
        paths = [str(settings.BASE_DIR), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        os.execv(sys.executable, [sys.executable, "-m", self.program, *argv[1:]])

    def handle(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError("started from a command line only")
