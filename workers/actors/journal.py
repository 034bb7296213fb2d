"""The journal of a Job in the database: every write is fenced, every heartbeat renews the lease."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections

from workers.actors import site  # noqa: F401
from workers.actors.lease import renewed
from workers.messages.events import Event
from workers.supervision import LeaseLost, Wish

from apps.core import clock  # isort: skip
from apps.tuning import services  # isort: skip

PATIENCE = timedelta(seconds=20)
"""A lease lasts for ten more: enough to end a child."""
_T = TypeVar("_T")
log = logging.getLogger(__name__)


def again(act: Callable[..., _T], *arguments: object) -> _T:
    """Once more over a new connection where the database's broke: all that is written is fenced, and known by its number."""
    try:
        return act(*arguments)
    except (OperationalError, InterfaceError) as error:
        log.warning("written once more: %s", error)
        close_old_connections()
        return act(*arguments)


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
        try:
            with renewed(self._claim) if answered else nullcontext():
                again(services.write, self._claim, events)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost

    def heartbeat(self) -> Wish:
        """What the user and the others want, or a pause when this worker has to go. Raises LeaseLost.

        A database that cannot be asked is asked again while the lease lasts: a server restarts, SQLite is locked for a while.
        """
        try:
            self.asked = services.heartbeat(self._claim)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost
        except DatabaseError as error:
            close_old_connections()
            if clock.now() - self._claim.renewed > PATIENCE:
                raise
            log.warning("%s %s: its lease was not renewed: %s", self._claim.task, self._claim.job_id, error)
        self.turned |= self.asked == "turn"
        return "pause" if self.ours and self._leaving.is_set() else self.asked

    @property
    def ours(self) -> bool:
        """Whether the user wants it to go on."""
        return self.asked in ("continue", "turn")
