"""`manage.py demo`: the example SqueezeNet, uploaded and tuned for three minutes. `up --demo` starts it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from apps.catalog import services as catalog
from apps.catalog.examples import EVERY, EXAMPLE, example_file
from apps.catalog.models import Network, Target
from apps.operations.arguments import above_zero
from apps.operations.site_command import SiteCommand
from apps.tuning import services
from apps.tuning.models import TuningRun
from workers.messages.spec import Budget

PATIENCE = 600.0  # s for the machine to be measured and the network to be read


class Command(SiteCommand):
    help = "Uploads the example network and starts a run of three minutes; needs a site that is up."
    requires_system_checks: list[str] = []  # noqa: RUF012  (the base class declares it so)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--minutes", type=above_zero, default=3.0)
        parser.add_argument("--network", choices=EVERY, default=EXAMPLE)

    def handle(self, *args: Any, **options: Any) -> None:
        owner = get_user_model().objects.filter(is_active=True).order_by("pk").first()
        if owner is None:
            raise CommandError("the site has no account yet: start it with `manage.py up` first")
        run = _run(owner, options["network"], Budget(seconds=60.0 * options["minutes"]))
        self.stdout.write(f"run {run.pk} is queued")


def _run(owner: Any, name: str, budget: Budget) -> TuningRun:
    target = services.ensure_local_target()
    network = Network.objects.filter(owner=owner, name=name).exclude(state=Network.State.REJECTED).first()
    if network is None:  # one that was rejected is read again
        network = catalog.create_network(owner, f"{name}.onnx", example_file(name))
    _wait(lambda: _ready(network), "the network to be read")
    _wait(lambda: _ready(target), "this machine to be measured")
    return services.create_run(owner, network, target, "auto", budget)


def _ready(row: Network | Target) -> bool:
    row.refresh_from_db()
    if row.state in ("rejected", "failed"):
        raise CommandError("; ".join(filter(None, (f"{row}: {row.error}", row.next_step))))
    return row.state == "ready"


def _wait(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise CommandError(f"waited {PATIENCE:.0f} s for {what}: see the logs of `up`")
        time.sleep(0.5)
