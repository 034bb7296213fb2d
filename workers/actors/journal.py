"""The journal of a Job in the database: every write is fenced, every heartbeat renews the lease."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext

from workers.actors import site  # noqa: F401
from workers.actors.lease import renewed
from workers.messages.events import Event
from workers.supervision import Control, LeaseLost

from apps.tuning import services  # isort: skip


class DatabaseJournal:
    """Journal port over services. `leaving` set means that this worker has to go: the child is asked to pause.

    `asked` is what the user wanted last, so that a pause of ours is not taken for theirs.
    """

    def __init__(self, claim: services.Claim, leaving: threading.Event) -> None:
        self._claim = claim
        self._leaving = leaving
        self.asked: Control = "continue"

    def write(self, events: Sequence[Event]) -> None:
        """Keeps the events in one fenced transaction. Raises LeaseLost.

        A result may bring a file of gigabytes: to copy it to the disk can take longer than the lease lasts.
        """
        answered = any(event["kind"] == "result" for event in events)
        try:
            with renewed(self._claim) if answered else nullcontext():
                services.write(self._claim, events)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost

    def heartbeat(self) -> Control:
        """What the user wants, or a pause when this worker has to go. Raises LeaseLost."""
        try:
            self.asked = services.heartbeat(self._claim)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost
        return "pause" if self.asked == "continue" and self._leaving.is_set() else self.asked
