"""How often an account may ask for what takes the disk's room or the processor's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings

from apps.core import amounts
from apps.core.errors import TooOften
from apps.core.pace import Pace
from apps.dashboard import humans

HOUR = 3600.0
UPLOADS = Pace(30, HOUR)
BYTES = Pace(settings.QUOTA, HOUR)
"""Of uploads: what was refused or deleted lies on the disk until the next sweep, and counts for nobody's quota."""
EXAMPLES = Pace(20, HOUR)
RUNS = Pace(120, HOUR)
"""Rows of a run that was begun and stopped stay until its network is deleted."""
WORDS = Pace(600, HOUR)
"""To a run: each is an event and a message that stay."""
MEASUREMENTS = Pace(6, HOUR)
"""Of a machine: half a minute each, in which nothing else runs."""


def check_upload(user: Any, value: str, size: int) -> None:
    """Counts one more upload of so many bytes; raises TooOften, of `value`, where it is too much."""
    check(UPLOADS, user, value, "uploads")
    check(BYTES, user, value, "of uploads", size, amounts.shown)


def check(pace: Pace, user: Any, value: str, things: str, cost: int = 1, shown: Callable[[int], str] = str) -> None:
    """Counts one more of these things; raises TooOften, of `value`, where it is one too many."""
    if not pace.allows(str(user.pk), cost):
        reason = f"an account has at most {shown(pace.most)} {things} in {humans.duration(pace.seconds)}"
        raise TooOften(value, reason, "wait, then try again")
