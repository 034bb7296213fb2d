"""Commands that ask the site's services for something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, OperationalError, ProgrammingError, connection
from django.db.migrations.exceptions import MigrationSchemaMissing

from apps.core.errors import ANOTHERS, Refused
from apps.core.full_disk import is_full, refusal

UNREACHED = (
    "see that what DATABASE_URL names is there and lets this user in; without it the site has a file in DATA_DIR"
)

MAKES_NO_TABLES = "make that user the owner of the database: ALTER DATABASE name OWNER TO user"
_NO_RIGHT = "42501"
"""PostgreSQL's code of it."""


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
            if isinstance(error, PermissionError) and Path(str(error.filename)).is_relative_to(settings.DATA_DIR):
                raise CommandError(ANOTHERS.format(file=error.filename, folder=settings.DATA_DIR)) from error
            if isinstance(error, OperationalError | ProgrammingError | MigrationSchemaMissing):
                said = str(error).partition("\n")[0]
                next_step = MAKES_NO_TABLES if _lacks_rights(error) else _next_step()
                raise CommandError(f"the site's database cannot be used ({said}): {next_step}") from error
            raise


def _lacks_rights(error: BaseException | None) -> bool:
    """Whether the database refused its user something; what is said of the first table is Django's, and not of PostgreSQL."""
    refused = error.__context__ if isinstance(error, MigrationSchemaMissing) else error
    return getattr(refused and refused.__cause__, "sqlstate", None) == _NO_RIGHT


def _next_step() -> str:
    """Where it is reached, it lacks tables or columns of this version."""
    try:
        connection.ensure_connection()
    except DatabaseError:
        return UNREACHED
    return "start it with `manage.py up`"
