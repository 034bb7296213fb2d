"""`manage.py worker NAME`: one worker process, where `up` does not start them."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from apps.operations import python_path
from workers.messages.names import WORKERS


class Command(BaseCommand):
    help = "Works on its queues until it is ended. One `measure` worker a machine; `up` starts one of each by itself."
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", choices=tuple(WORKERS))

    def handle(self, *args: Any, **options: Any) -> None:
        os.environ["PYTHONPATH"] = python_path.first(settings.BASE_DIR, os.environ)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-P", "-m", "workers.actors", options["name"]])
