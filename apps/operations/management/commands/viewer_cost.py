"""`manage.py viewer_cost`: what a websocket viewer costs in configurations a second, by alternated pairs of runs."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser
from django.test import Client

from apps.catalog.models import Network
from apps.operations.arguments import above_zero, count
from apps.operations.site_command import SiteCommand
from apps.tuning import services
from apps.tuning.models import Job, TuningRun
from apps.tuning.states import ACTIVE, OVER, State
from apps.tuning.turns import LATER
from workers.messages.spec import Budget
from workers.messages.whole import write_whole

PATIENCE = 1800.0
"""s that an idle site is waited for, and a run's end beyond its budget."""


class Command(SiteCommand):
    help = "Runs pairs with and without a viewer and prints the ratio; resumes; needs a site that is up and idle."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--network", default="squeezenet", help="the name of a network of the first account")
        parser.add_argument("--address", default="127.0.0.1:8000", help="where the site listens")
        parser.add_argument("--pairs", type=count, default=3)
        parser.add_argument("--seconds", type=above_zero, default=60.0, help="the budget of one run")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(is_active=True).order_by("pk").first()
        network = Network.objects.filter(owner=owner, name=options["network"], state="ready").first()
        if owner is None or network is None:
            raise CommandError(
                f"no network {options['network']!r} is ready: upload it, or start the site with up --demo"
            )
        path = Path(settings.DATA_DIR) / "benchmarks" / "viewer_cost.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        cells: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
        # The first run of a network has its baselines taken beside it: one that is not counted, and very short.
        self._rate(owner, network, {**options, "seconds": 5.0}, 0, False)
        ratios = []
        for pair in range(options["pairs"]):
            rates: dict[bool, float] = {}
            for viewed in ((False, True), (True, False))[pair % 2]:
                what = f"{network.name} {options['seconds']:g} s seed {pair} {'viewed' if viewed else 'alone'}"
                cell = f"{what} ({network.sha256[:8]})"
                if cell not in cells:
                    cells[cell] = self._rate(owner, network, options, pair, viewed)
                    write_whole(path, json.dumps(cells, indent=1, sort_keys=True))
                rates[viewed] = cells[cell]
                self.stdout.write(f"{what}: {rates[viewed]:.2f} configurations/s")
            ratios.append(round(rates[True] / rates[False], 3))
        self.stdout.write(
            f"with a viewer {statistics.median(ratios):.3f} x of alone (median of {len(ratios)} pairs: {ratios})"
        )

    def _rate(self, owner: Any, network: Network, options: dict[str, Any], seed: int, viewed: bool) -> float:
        _until(lambda: not Job.objects.filter(state__in=ACTIVE).exclude(LATER).exists(), "the site to be idle")
        target = services.ensure_local_target()
        run = services.create_run(owner, network, target, "auto", Budget(seconds=options["seconds"]), seed=seed)
        with viewer(owner, run, options["address"]) if viewed else nullcontext():
            over = Job.objects.filter(pk=run.job_id, state__in=OVER)
            _until(over.exists, "the run to end", PATIENCE + options["seconds"])
        job = over.get()
        if job.state != State.DONE:
            raise CommandError(
                f"a run ended as {job.state} ({job.error or 'no error told'}): mend that, then run this again"
            )
        run.refresh_from_db()
        return run.trials / run.clock


@contextmanager
def viewer(owner: Any, run: TuningRun, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Follows the run as its owner, in a session that ends with it."""
    client = Client()
    client.force_login(owner)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    argv = [sys.executable, "-m", "apps.operations.viewer", f"ws://{address}/ws/runs/{run.pk}/?after=0"]
    try:
        with subprocess.Popen(argv, cwd=settings.BASE_DIR, stdin=subprocess.PIPE) as process:
            try:
                assert process.stdin is not None
                # Not on its command line, which is everybody's to read.
                process.stdin.write(cookie.encode())
                process.stdin.close()
                yield process
                if process.poll() is not None:
                    raise CommandError(f"the viewer ended early with status {process.returncode}: is {address} right?")
            finally:
                process.terminate()
    finally:
        client.logout()


def _until(ready: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise CommandError(f"waited {seconds:.0f} s for {what}")
        time.sleep(1.0)
