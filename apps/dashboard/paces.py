"""How often an account may ask for what takes the disk's room or the processor's time."""

from __future__ import annotations

from typing import Any

from apps.core.errors import Refused
from apps.core.pace import Pace
from apps.dashboard import humans

HOUR = 3600.0
UPLOADS = Pace(30, HOUR)
EXAMPLES = Pace(20, HOUR)


def check(pace: Pace, user: Any, value: str, things: str) -> None:
    """Counts one more of these things; raises Refused, of `value`, where it is one too many."""
    if not pace.allows(str(user.pk)):
        reason = f"an account has at most {pace.tries} {things} in {humans.duration(pace.seconds)}"
        raise Refused(value, reason, "wait, then try again")
