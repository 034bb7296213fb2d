"""Time of day, in one place so that tests can say what it is."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """UTC, aware."""
    return timezone.now()
