"""The journal of a Job in the database: every write is fenced, every heartbeat renews the lease."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext

from workers.actors import site  # noqa: F401
from workers.actors.lease import renewed
from workers.messages.events import Event
from workers.supervision import LeaseLost, Wish

from apps.tuning import services  # isort: skip


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
        answered = any(event["kind"] == "result" for event in events)
        try:
            with renewed(self._claim) if answered else nullcontext():
                services.write(self._claim, events)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost

    def heartbeat(self) -> Wish:
        """What the user and the others want, or a pause when this worker has to go. Raises LeaseLost."""
        try:
            self.asked = services.heartbeat(self._claim)
        except services.LeaseLost as lost:
            raise LeaseLost(str(lost)) from lost
        self.turned |= self.asked == "turn"
        return "pause" if self.ours and self._leaving.is_set() else self.asked

    @property
    def ours(self) -> bool:
        """Whether the user wants it to go on."""
        return self.asked in ("continue", "turn")
