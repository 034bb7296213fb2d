"""The journal of a Job in the database: every write is fenced, every heartbeat renews the lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections

from workers.actors import site  # noqa: F401
from workers.actors.lease import renewed
from workers.messages.channel import Wish
from workers.messages.events import Event

from apps.core import clock  # isort: skip
from apps.core.full_disk import is_full  # isort: skip
from apps.tuning import services  # isort: skip

PATIENCE = timedelta(seconds=25)
"""Since the lease was renewed; it lasts for five more: enough to end a child."""
PAUSE = 0.5  # s between two tries
_T = TypeVar("_T")
log = logging.getLogger(__name__)


def again(claim: services.Claim, act: Callable[..., _T], *arguments: object) -> _T:
    """While the lease lasts, over a new connection where the database's broke: a server restarts, SQLite is locked for a while.
    All that is written is fenced, and known by its number."""
    while True:
        try:
            return act(*arguments)
        except (OperationalError, InterfaceError) as error:
            if not _lasts(claim, error) or is_full(error):
                raise
            time.sleep(PAUSE)


def _lasts(claim: services.Claim, error: Exception) -> bool:
    """Whether the lease does long enough to ask the database, which just failed, again."""
    close_old_connections()
    log.warning("%s %s: %s", claim.task, claim.job_id, error)
    return clock.now() - claim.renewed <= PATIENCE


class DatabaseJournal:
    """Journal port over services. `leaving` set means that this worker has to go: the child is asked to pause.

    `asked` is what was wanted last, so that a pause of ours is not taken for the user's; `turned`: the run's turn was over.
    """

    def __init__(self, claim: services.Claim, leaving: threading.Event) -> None:
        self._claim = claim
        self._leaving = leaving
        self.asked: Wish = "continue"
        self.turned = False

    def write(self, events: Sequence[Event]) -> None:
        """Keeps the events in one fenced transaction. Raises LeaseLost.

        A result may bring a file of gigabytes: to copy it to the disk can take longer than the lease lasts.
        """
        events = [event for event in events if not event.get("beat")]
        if not events:
            return  # only that it lives
        answered = any(event["kind"] == "result" for event in events)
        with renewed(self._claim) if answered else nullcontext():
            again(self._claim, services.write, self._claim, events)

    def heartbeat(self) -> Wish:
        """What the user and the others want, or a pause when this worker has to go. Raises LeaseLost.

        A database that cannot be asked is asked again while the lease lasts: a server restarts, SQLite is locked for a while.
        """
        try:
            self.asked = services.heartbeat(self._claim)
        except (DatabaseError, InterfaceError) as error:
            if not _lasts(self._claim, error):
                raise
        self.turned |= self.asked == "turn"
        return "pause" if self.ours and self._leaving.is_set() else self.asked

    @property
    def ours(self) -> bool:
        """Whether the user wants it to go on."""
        return self.asked in ("continue", "turn")
