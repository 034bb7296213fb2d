"""What a form's answer says on the next page, in a cookie of this site's own."""

from __future__ import annotations

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage


class Told(CookieStorage):
    """As Django's: two kilobytes, the latest of it."""

    cookie_name = settings.TOLD_COOKIE_NAME
