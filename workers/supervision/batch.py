"""Events on their way to the journal, a batch a transaction."""

from __future__ import annotations

from collections.abc import Callable

from workers.messages.events import Event
from workers.supervision.ports import Journal

BATCH_EVENTS = 256
BATCH_BYTES = 4 << 20


class Batch:
    """Gathers events for at most `seconds`; `due` is when they have to be written."""

    def __init__(self, journal: Journal, clock: Callable[[], float], seconds: float) -> None:
        self._journal = journal
        self._clock = clock
        self._seconds = seconds
        self._events: list[Event] = []
        self._bytes = 0
        self.due = float("inf")

    def add(self, event: Event, size: int) -> None:
        """Takes one more, of `size` bytes; writes when it is full."""
        if not self._events:
            self.due = self._clock() + self._seconds
        self._events.append(event)
        self._bytes += size
        if len(self._events) >= BATCH_EVENTS or self._bytes >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what there is."""
        events, self._events, self._bytes, self.due = self._events, [], 0, float("inf")
        if events:
            self._journal.write(events)
