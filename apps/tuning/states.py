"""States of a Job and every legal step between them."""

from __future__ import annotations

from django.db import models


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


HELD = (State.RUNNING, State.STOPPING)
"""A worker has the job."""
WAITING = (State.QUEUED, State.INTERRUPTED)
"""It is a worker's turn."""
ACTIVE = (State.QUEUED, State.RUNNING, State.STOPPING, State.INTERRUPTED)
"""The job goes on without the user."""
OVER = (State.DONE, State.FAILED)

LEGAL: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.PAUSED, State.DONE}),
    State.RUNNING: frozenset(
        # To itself: another worker takes over when the lease ran out.
        {State.RUNNING, State.QUEUED, State.PAUSED, State.STOPPING, State.DONE, State.FAILED, State.INTERRUPTED}
    ),
    State.STOPPING: frozenset({State.DONE, State.FAILED}),
    State.PAUSED: frozenset({State.QUEUED, State.DONE}),
    State.INTERRUPTED: frozenset({State.QUEUED, State.PAUSED, State.DONE}),
    State.FAILED: frozenset({State.QUEUED}),
    State.DONE: frozenset(),
}


def before(after: str) -> tuple[State, ...]:
    """The states from which `after` may be reached: the condition of its UPDATE."""
    return tuple(state for state, reached in LEGAL.items() if State(after) in reached)
