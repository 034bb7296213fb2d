"""`manage.py doctor`: what is there, what is missing, and what to do about it."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from apps.operations.doctor import examine


class Command(BaseCommand):
    help = "Looks at everything the site needs; ends with status 1 when something is missing."
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def handle(self, *args: Any, **options: Any) -> None:
        missing = 0
        for finding in examine():
            self.stdout.write(finding.line())
            self.stdout.flush()
            missing += finding.level == "missing"
        if missing:
            sys.exit(1)
