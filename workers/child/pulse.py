"""Events with a sign of life: a supervisor takes a child that says nothing for a minute for hung."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from workers.child.clock import RunClock
from workers.messages.events import Event

INTERVAL = 10.0


class Pulse:
    """Passes events on and, while nothing else is said, tells every 10 s that the work goes on.

    `patience` is how many seconds it does so without an event: a thread that beats on beside one that hangs would keep
    the child for ever. A task that has a deadline for its whole needs none.
    """

    def __init__(self, emit: Callable[[Event], None], clock: RunClock) -> None:
        self._emit, self.clock = emit, clock
        self.patience = float("inf")
        self._heard, self._waits = clock.awake(), False
        self._said = threading.Event()
        self._closed = threading.Event()
        self._text = "starting"
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def emit(self, event: Event) -> None:
        self._said.set()
        if event["kind"] == "phase":
            self._text = event["text"]
        self._emit(event)
        self._heard = self.clock.awake()  # a slow supervisor's time is not the work's

    def tell(self, kind: str, **payload: Any) -> None:
        self.emit({"kind": kind, "clock": round(self.clock.now(), 6), **payload})

    @contextmanager
    def waiting(self, turn: AbstractContextManager[float]) -> Iterator[float]:
        """Enters and leaves `turn`; however long others keep it waiting, that is no hang."""
        self._waits = True
        try:
            with turn as waited:
                self._heard, self._waits = self.clock.awake(), False
                yield waited
        finally:
            self._heard, self._waits = self.clock.awake(), False

    def close(self) -> None:
        self._closed.set()

    def beat(self) -> None:
        """Says that the work goes on, unless something was said since the last beat or nothing for too long."""
        alive = self._waits or self.clock.awake() - self._heard < self.patience
        if alive and not self._said.is_set():
            doing = "waiting for its turn" if self._waits else self._text
            self._emit(
                {"kind": "log", "clock": self.clock.now(), "level": "info", "text": f"still {doing}", "beat": True}
            )
        self._said.clear()

    def _beat(self) -> None:
        while not self._closed.wait(INTERVAL):
            try:
                self.beat()
            except BrokenPipeError:
                return
