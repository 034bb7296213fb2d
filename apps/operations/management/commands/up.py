"""`manage.py up`: the whole site, from one terminal, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser
from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader

from apps.core import signin
from apps.operations import embedded, listening, lock, site
from apps.operations.belongings import check_database, note_database
from apps.operations.launcher import Launcher
from apps.operations.parts import Part
from apps.operations.site_command import SiteCommand


def check_age() -> None:
    """Raises CommandError where a later version changed the database: Django passes over migrations that it does not know."""
    loader = MigrationLoader(connection)
    ours = {app for app, _ in loader.disk_migrations}
    if later := sorted(
        name for app, name in set(loader.applied_migrations) - set(loader.disk_migrations) if app in ours
    ):
        raise CommandError(
            f"the site's database is of a later version ({later[-1]} was made there): start that version, or restore the "
            "backup that was made before it"
        )


class Command(SiteCommand):
    help = "Starts everything: queue, workers, web pages. Needs what is in requirements.txt, and a compiler (manage.py doctor)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="tune the example SqueezeNet for three minutes")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            held = lock.take(Path(settings.DATA_DIR))
            wanted = listening.configured()
            check_age()
            check_database()
            call_command("migrate", verbosity=0, interactive=False)
            note_database()
            listening.admit(wanted)
            socket, address = listening.listen(wanted)
        except (listening.Refused, lock.Busy) as error:
            raise CommandError(str(error)) from error
        if address.port != wanted.port:
            # Browsers give the sessions of a host to whatever has a port of it: another user's program may have them by now.
            Session.objects.all().delete()
            self.stdout.write(
                f"Port {wanted.port} is taken; this site is on port {address.port}, where everybody signs in anew."
            )
        lock.note(held, address.site())
        try:
            with socket:
                self._run(address, socket.fileno(), demo=options["demo"])
        except embedded.NoServer as error:
            raise CommandError(str(error)) from error

    def _run(self, address: listening.Address, listening_on: int, demo: bool) -> None:
        first = site.parts([site.server()] if site.own_server() else [], address)
        plans = site.everything(listening_on) + ([site.command("demo", once=True)] if demo else [])
        launcher = Launcher(first, site.parts(plans, address), self._say, adopts=True)
        launcher.catch_signals()
        self._invite(address)
        connections.close_all()
        try:
            self._start_server(launcher, first)
            launcher.run()
        finally:
            launcher.end()
            signin.revoke()
        self.stdout.write("Everything has ended.")

    def _start_server(self, launcher: Launcher, first: list[Part]) -> None:
        def check() -> None:
            launcher.tend(first)
            if launcher.ending:
                raise embedded.NoServer("stopped while it started")

        check()
        embedded.wait_until_up(site.environment(None)["REDIS_URL"], site.SERVER_SECONDS, check)

    def _invite(self, address: listening.Address) -> None:
        user = signin.single_user() if address.loopback else None
        try:
            path = f"/login/{signin.issue(user)}/" if user is not None else "/"
        except OSError as error:
            self._say(f"No link can be kept ({error}): make room, then `manage.py link` prints one.")
            path = "/"
        self.stdout.write(f"Open {address.site()}{path}")
        if path != "/":
            self.stdout.write(
                f"(this link signs you in: once, within {signin.MINUTES} minutes; `manage.py link` prints another)"
            )
        self.stdout.write(f"Logs are in {Path(settings.DATA_DIR) / 'logs'}. Ctrl-C ends everything.")
        self.stdout.flush()

    def _say(self, news: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more, or its disk is full: that ends no site
            self.stderr.write(news)
            self.stderr.flush()
