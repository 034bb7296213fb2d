"""`manage.py reconcile`: gives Jobs of dead workers to others, sends messages that were lost, and removes what is over."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser
from django.db import DatabaseError, close_old_connections

from apps.core.full_disk import keep_reserve
from apps.operations.arguments import above_zero
from apps.operations.site_command import SiteCommand
from apps.tuning import services

log = logging.getLogger(__name__)
SWEEP = 600.0  # s between two


class Command(SiteCommand):
    help = "Looks every ten seconds for Jobs that nobody works on. `up` starts one by itself; one is enough."
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)
    _compared = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=above_zero, default=10.0, metavar="SECONDS")
        parser.add_argument("--once", action="store_true", help="look once and end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self._look()
            self._sweep()
            return
        leave = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: leave.set())
        sweep_due = time.monotonic()
        while not leave.is_set():
            _tried(self._look)
            if time.monotonic() >= sweep_due:  # whether or not that could look: it is what makes room on a full disk
                sweep_due = time.monotonic() + SWEEP
                _tried(self._sweep)
            leave.wait(options["every"])

    def _look(self) -> None:
        close_old_connections()
        services.ensure_local_target()
        if not self._compared and services.remeasure_if_changed():
            log.info("this machine is not as it was measured: it is measured again")
        self._compared = True
        counts = services.reconcile()
        if any(counts.values()):
            log.info("%s", counts)

    def _sweep(self) -> None:
        count = services.sweep()
        call_command("clearsessions")
        keep_reserve()
        if count:
            log.info("removed %d files and directories that nobody reads any more", count)


def _tried(step: Callable[[], None]) -> None:
    """What goes wrong may be right the next time."""
    try:
        step()
    except (DatabaseError, OSError):
        log.exception("could not %s; trying again", step.__name__.strip("_"))
