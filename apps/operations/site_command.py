"""Commands that ask the site's services for something."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from apps.core.errors import Refused
from apps.core.full_disk import is_full, refusal


class SiteCommand(BaseCommand):
    """Ends with one line when it is refused, or finds no room on the disk."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """See `BaseCommand`."""
        try:
            return super().execute(*args, **options)
        except Refused as error:
            raise CommandError(str(error)) from None
        except (OSError, DatabaseError) as error:
            if is_full(error):
                raise CommandError(str(refusal())) from error
            raise
