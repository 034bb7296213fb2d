"""The processes a site is made of."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from apps.operations import embedded, python_path
from apps.operations.listening import Address
from apps.operations.parts import Part, Plan
from apps.tuning import services
from workers.messages.names import WORKERS

SERVER_SECONDS = 15.0


def own_server() -> bool:
    """Whether the queue's server is ours to start."""
    return not os.environ.get("REDIS_URL")


def environment(address: Address | None) -> dict[str, str]:
    """For the parts: where the queue is and where the site really listens."""
    found = dict(os.environ)
    found["DATA_DIR"] = str(settings.DATA_DIR)
    if own_server():
        found["REDIS_URL"] = settings.REDIS_URL
    if address is not None:
        found["BIND"] = address.url().removeprefix("http://")
    found["PYTHONPATH"] = python_path.first(settings.BASE_DIR, found)
    found["PYTHONSAFEPATH"] = "1"  # what lies where `up` was called is no code of the site's
    return found


def server() -> Plan:
    """Raises embedded.NoServer."""
    prepare = partial(embedded.prepare, settings.DATA_DIR, urlsplit(settings.REDIS_URL).password or "")
    prepare(0)  # what only the user can put right is said at once, and not tried again
    return Plan("queue", embedded.arguments(settings.DATA_DIR), before=prepare)


def worker(name: str) -> Plan:
    """Started by name: this side imports nothing of the workers but their messages."""
    return Plan(name, [sys.executable, "-m", "workers.actors", name])


def command(name: str, *arguments: str, once: bool = False) -> Plan:
    return Plan(name, [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), name, *arguments], once=once)


def web(listening: int) -> Plan:
    """On a socket the launcher holds, so that nobody takes the port while the web process is started again."""
    serve = ["-m", "tuningsite.serve", "--fd", str(listening), "--no-server-name", "tuningsite.asgi:application"]
    return Plan("web", [sys.executable, *serve], pass_fds=(listening,), before=lambda _: services.forget_uploads())


def parts(plans: Sequence[Plan], address: Address | None) -> list[Part]:
    logs = Path(settings.DATA_DIR) / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    return [Part(plan, logs, environment(address)) for plan in plans]


def everything(listening: int) -> list[Plan]:
    """All but the server."""
    return [web(listening), *map(worker, WORKERS), command("reconcile")]
