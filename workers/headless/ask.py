"""One short question to a child: start it, wait, take its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workers.headless.errors import Failure, UserMistake
from workers.messages.events import Event
from workers.supervision import Control, Deadlines, supervise


class Listener:
    """A journal in memory: keeps what it hears and passes it on."""

    def __init__(self, hear: Callable[[Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self._hear = hear

    def write(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events.append(event)
            if self._hear:
                self._hear(event)

    def heartbeat(self) -> Control:
        return "continue"


def ask(order: Mapping[str, Any], hear: Callable[[Event], None] | None = None, seconds: float = 900.0) -> Event:
    """The child's result event. Raises UserMistake when it refused the input, Failure when it broke."""
    listener = Listener(hear)
    ending = supervise(order, listener, deadlines=Deadlines(total=seconds))
    for event in listener.events:
        if event["kind"] == "failed":
            kind = UserMistake if event["error"] in {"NetworkError", "ImportFailed", "NoLinker"} else Failure
            raise kind("; ".join(part for part in (event["reason"], event["next_step"]) if part))
    results = [event for event in listener.events if event["kind"] == "result"]
    if not results:
        raise Failure(f"the {order['task']} process ended early: {ending.detail}\n{ending.log[-2000:]}")
    return results[-1]
