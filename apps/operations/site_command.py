"""Commands that ask the site's services for something."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, ProgrammingError, connection

from apps.core.errors import Refused
from apps.core.full_disk import is_full, refusal

UNREACHED = (
    "see that what DATABASE_URL names is there and lets this user in; without it the site has a file in DATA_DIR"
)


class SiteCommand(BaseCommand):
    """Ends with one line when it is refused, finds no room on the disk, or no database in order."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """See `BaseCommand`."""
        try:
            return super().execute(*args, **options)
        except Refused as error:
            raise CommandError(str(error)) from None
        except (OSError, DatabaseError) as error:
            if is_full(error):
                raise CommandError(str(refusal())) from error
            if isinstance(error, OperationalError | ProgrammingError):
                said = str(error).partition("\n")[0]
                raise CommandError(f"the site's database cannot be read ({said}): {_next_step()}") from error
            raise


def _next_step() -> str:
    """Where it is reached, it lacks tables or columns of this version."""
    try:
        connection.ensure_connection()
    except DatabaseError:
        return UNREACHED
    return "start it with `manage.py up`"
