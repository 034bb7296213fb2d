"""`manage.py link`: another link with which somebody signs in, while the site runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser

from apps.core import signin
from apps.operations import listening, lock
from apps.operations.site_command import SiteCommand

SHOWN = 10
"""Names in an error."""


class Command(SiteCommand):
    help = "Prints a link that signs an account in: once, within ten minutes; earlier ones are void."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", help="whose; not needed where one account alone has no password")

    def handle(self, *args: Any, name: str | None = None, **options: Any) -> None:
        try:
            user = self._user(name)
            site = lock.noted(Path(settings.DATA_DIR)) or listening.configured().site()
        except listening.Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Open {site}/login/{signin.issue(user)}/")
        self.stdout.write(f"(this link signs {user} in: once, within {signin.MINUTES} minutes)")

    def _user(self, name: str | None) -> Any:
        """Whoever has the shell and the database may sign in as anybody."""
        accounts = list(get_user_model().objects.filter(is_active=True).order_by("username"))
        if not accounts:
            raise CommandError("the site has no account yet: `manage.py up` makes one, and prints its link")
        bare = [account for account in accounts if not account.has_usable_password()]
        meant = [account for account in accounts if account.get_username() == name] if name else bare
        if len(accounts) == 1 and not name:
            meant = accounts
        if len(meant) != 1:
            names = ", ".join(str(account) for account in accounts[:SHOWN]) + (", ..." if accounts[SHOWN:] else "")
            said = f"no account {name!r} may sign in" if name else "the site has several accounts"
            raise CommandError(f"{said}: `manage.py link NAME` prints a link for one of {names}")
        return meant[0]
