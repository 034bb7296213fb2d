"""`manage.py account`: an account of somebody who uses the site, another password for one, or its end."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from getpass import getpass
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from apps.operations.site_command import SiteCommand
from apps.tuning.states import ACTIVE
from apps.tuning.turns import LATER

RUNS_SITE = "({} runs this site: it has the machine measured again and adds devices)"
SHOWN = 10
"""Names in an error."""


class Command(SiteCommand):
    help = (
        "Makes an account with a password, which has its own networks and runs and nothing of others. The first account, "
        "`owner` where `up` made it, runs the site: it has the machine measured again and adds devices. Gives "
        "it another password where it is there already, which signs it out everywhere. With --close it signs in no more, until "
        "--reopen."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="with which it signs in")
        parser.add_argument("--close", action="store_true", help="signs it out everywhere, until --reopen")
        parser.add_argument(
            "--reopen", action="store_true", help="one that was closed signs in again, with a new password"
        )
        parser.add_argument("--next", metavar="OTHER", help="who runs the site when NAME, who does, is closed")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        if options["close"] and options["reopen"]:
            raise CommandError("--close and --reopen: say one of them")
        if options["close"]:
            self._close(name, options["next"])
            return
        if options["next"]:
            raise CommandError(f"--next {options['next']}: it goes with --close of who runs the site")
        accounts = get_user_model().objects
        name = get_user_model().normalize_username(name)  # as the form reads it
        user = accounts.filter(username=name).first()
        keeper = accounts.filter(is_active=True, is_staff=True).order_by("pk").first()
        closed = user is not None and not user.is_active
        if closed and not options["reopen"]:
            raise CommandError(f"account {name} is closed; choose another name, or open it again with --reopen")
        if options["reopen"] and not closed:
            raise CommandError(
                f"--reopen: there is no closed account {name}; leave it out for one that is open, or a new one"
            )
        made = user is None
        user = user or get_user_model()(username=name, is_staff=keeper is None)
        try:
            user.clean_fields(exclude=["password"])
            password = _password(name)
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(f"account {name}: {' '.join(error.messages)}") from None
        user.set_password(password)
        user.is_active = True
        user.save()
        became = "is a new account" if made else "is open again" if closed else "has another password"
        self.stdout.write(f"{name} {became}; it signs in on the site's pages")
        if made and keeper is None:
            self.stdout.write(RUNS_SITE.format(name))
        elif made and keeper is not None and not keeper.has_usable_password():
            self.stdout.write(
                f"({keeper}, whom `up` made, runs this site: it has the machine measured again and adds devices, {name} does "
                f"not; `manage.py account {keeper}` gives it a password too)"
            )

    def _close(self, name: str, follower: str | None) -> None:
        """What it has stays, as far as it was not deleted before. The site is never without somebody who runs it."""
        name = get_user_model().normalize_username(name)  # as the form reads it
        with transaction.atomic():
            accounts = {user.get_username(): user for user in get_user_model().objects.filter(is_active=True)}
            user = accounts.pop(name, None)
            if user is None:
                raise CommandError(f"no account {name!r} is open; {_others(accounts)}")
            runs_site = user.is_staff and not any(other.is_staff for other in accounts.values())
            if not accounts:
                raise CommandError(f"account {name} is the only one; make another first")
            if runs_site and follower not in accounts:
                raise CommandError(
                    f"account {name} runs this site: say who does then with --next OTHER; {_others(accounts)}"
                )
            if follower and not runs_site:
                raise CommandError(f"--next {follower}: account {name} does not run this site; leave it out")
            get_user_model().objects.filter(pk=user.pk).update(is_active=False, is_staff=False)
            if follower:
                get_user_model().objects.filter(username=follower).update(is_staff=True)
            networks, jobs = user.networks.count(), user.jobs.filter(state__in=ACTIVE).exclude(LATER).count()
        left = (
            f"; what it has stays (networks: {networks}, jobs that go on: {jobs}), --reopen leads there"
            if networks or jobs
            else ""
        )
        self.stdout.write(f"{name} is closed, and signed out everywhere{left}")
        if follower:
            self.stdout.write(RUNS_SITE.format(follower))


def _others(accounts: Iterable[str]) -> str:
    names = sorted(accounts)
    shown = ", ".join(names[:SHOWN]) + (", ..." if names[SHOWN:] else "")
    return f"open are {shown or 'none'}"


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
