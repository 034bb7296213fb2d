"""Commands that are the headless product's: started by name, because this side loads no tuning library."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from apps.operations import python_path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {
    "tune": ("workers.headless", "tune"),
    "control": ("workers.headless", "control"),
    "landscape": ("workers.headless", "landscape"),
    "benchmark": ("workers.benchmarks",),
}
"""Modules by command, with the first of their words."""


def become(command: str, *words: str) -> NoReturn:
    """Python with that command's module and these words, in the same directory, of which it imports nothing."""
    os.environ["PYTHONPATH"] = python_path.first(ROOT, os.environ)
    os.execv(sys.executable, [sys.executable, "-P", "-m", *PROGRAMS[command], *words])


class HeadlessCommand(BaseCommand):
    """For `manage.py help`; touches no database."""

    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def run_from_argv(self, argv: list[str]) -> None:
        become(*argv[1:])

    def handle(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError("started from a command line only")
