"""Whose session a request's head names, before Django has the request. Needs no Django that is set up."""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.http import parse_cookie


def session_of(cookies: Iterable[bytes]) -> str:
    """Of these headers, as Django will read them; "" for none."""
    text = ",".join(value.decode("latin-1") for value in cookies)
    return str(parse_cookie(text).get(settings.SESSION_COOKIE_NAME, ""))
