"""How soon a page of runs asks again."""

from __future__ import annotations

from collections.abc import Collection

from apps.tuning.states import ACTIVE, State

LATER = 60
"""Seconds, where nothing goes on and something may be resumed."""


def refresh(states: Collection[str], soon: int) -> int:
    """Seconds: `soon` where one of runs in these `states` goes on, 0 where all are done."""
    if any(state in ACTIVE for state in states):
        return soon
    return LATER if any(state != State.DONE for state in states) else 0
