"""Misconfigurations that would put the site or its data at risk."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import DatabaseError


def is_loopback(bind: str) -> bool:
    """Whether `host:port` is reached from this machine only."""
    host = bind.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@register(Tags.security)
def open_to_others(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """An address that others reach needs names it answers to, and accounts."""
    if is_loopback(settings.BIND):
        return []
    found: list[CheckMessage] = []
    if not settings.EXTRA_HOSTS:
        found.append(
            Error(
                f"BIND={settings.BIND} is open to other machines, and ALLOWED_HOSTS names no host.",
                hint="Set ALLOWED_HOSTS to the names the site is reached by, or BIND to 127.0.0.1:8000.",
                id="tuning.E001",
            )
        )
    if not _accounts():
        found.append(
            Error(
                f"BIND={settings.BIND} is open to other machines, and there is no account with a password.",
                hint="Create one first: python manage.py createsuperuser. Or set BIND to 127.0.0.1:8000.",
                id="tuning.E002",
            )
        )
    return found


def _accounts() -> bool:
    try:
        users = get_user_model().objects.filter(is_active=True)
        return any(user.has_usable_password() for user in users[:100])
    except DatabaseError:  # before the first migration there are none
        return False
