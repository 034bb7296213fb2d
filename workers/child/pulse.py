"""Events with a sign of life: a supervisor takes a child that says nothing for a minute for hung."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from workers.engine.ports import Clock
from workers.messages.events import Event

INTERVAL = 10.0


class Pulse:
    """Passes events on and, while nothing else is said, tells every 10 s that the work goes on."""

    def __init__(self, emit: Callable[[Event], None], clock: Clock) -> None:
        self._emit, self.clock = emit, clock
        self._said = threading.Event()
        self._closed = threading.Event()
        self._text = "starting"
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def emit(self, event: Event) -> None:
        self._said.set()
        if event["kind"] == "phase":
            self._text = event["text"]
        self._emit(event)

    def tell(self, kind: str, **payload: Any) -> None:
        self.emit({"kind": kind, "clock": round(self.clock.now(), 6), **payload})

    def close(self) -> None:
        self._closed.set()

    def _beat(self) -> None:
        while not self._closed.wait(INTERVAL):
            if not self._said.is_set():
                try:
                    self._emit(
                        {"kind": "log", "clock": self.clock.now(), "level": "info", "text": f"still {self._text}"}
                    )
                except BrokenPipeError:
                    return
            self._said.clear()
