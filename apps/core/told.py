"""What a form's answer says on the next page, in a cookie of this site's own."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage


class Told(CookieStorage):
    """As Django's: two kilobytes, the latest of it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cookie_name = settings.TOLD_COOKIE_NAME
