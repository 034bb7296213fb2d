"""`manage.py account`: an account of somebody who uses the site, or another password for one."""

from __future__ import annotations

import sys
from getpass import getpass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from apps.operations.site_command import SiteCommand


class Command(SiteCommand):
    help = (
        "Makes an account with a password, which has its own networks and runs and nothing of others; the first one of a site "
        "may have the machine measured again. Gives it another password where it is there already, which signs it out "
        "everywhere."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="with which it signs in")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        accounts = get_user_model().objects
        name = get_user_model().normalize_username(name)  # as the form reads it
        user = accounts.filter(username=name).first()
        keeper = accounts.filter(is_active=True, is_staff=True).order_by("pk").first()
        if user is not None and not user.is_active:
            raise CommandError(f"account {name} is closed; choose another name")
        made = user is None
        user = user or get_user_model()(username=name, is_staff=keeper is None)
        try:
            user.clean_fields(exclude=["password"])
            password = _password(name)
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(f"account {name}: {' '.join(error.messages)}") from None
        user.set_password(password)
        user.save()
        self.stdout.write(
            f"{name} {'is a new account' if made else 'has another password'}; it signs in on the site's pages"
        )
        if made and keeper is not None and not keeper.has_usable_password():
            self.stdout.write(
                f"({keeper}, whom `up` made, runs this site: it has the machine measured again and adds devices, {name} does "
                f"not; `manage.py account {keeper}` gives it a password too)"
            )


def _password(name: str) -> str:
    """Typed twice, or the first line of what is no terminal. Raises CommandError."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        password, again = getpass(f"Password of {name}: "), getpass("Once more: ")
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")  # behind the question
        raise CommandError(f"account {name}: no password was given; nothing was changed") from None
    if again != password:
        raise CommandError(f"account {name}: the two passwords differ; nothing was changed, try again")
    return password
