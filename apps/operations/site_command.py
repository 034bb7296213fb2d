"""Commands that ask the site's services for something."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core.errors import Refused


class SiteCommand(BaseCommand):
    """Ends with one line when it is refused."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """See `BaseCommand`."""
        try:
            return super().execute(*args, **options)
        except Refused as error:
            raise CommandError(str(error)) from None
