"""`manage.py link`: another link with which the single user signs in, while the site runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from apps.core import signin
from apps.operations import listening, lock


class Command(BaseCommand):
    help = "Prints a link that signs the single user in: once, within ten minutes; earlier ones are void."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = self._user()
            site = lock.noted(Path(settings.DATA_DIR)) or listening.configured().url()
        except DatabaseError as error:
            raise CommandError(f"the site's database cannot be read ({error}): start it with `manage.py up`") from error
        except listening.Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Open {site.rstrip('/')}/login/{signin.issue(user)}/")
        self.stdout.write(f"(this link signs you in: once, within {signin.MINUTES} minutes)")

    def _user(self) -> Any:
        if not get_user_model().objects.filter(is_active=True).exists():
            raise CommandError("the site has no account yet: `manage.py up` makes one, and prints its link")
        user = signin.single_user()
        if user is None:
            raise CommandError(
                "the site has accounts with passwords, which sign in with those; "
                "`manage.py changepassword NAME` gives one another"
            )
        return user
