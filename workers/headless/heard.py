"""What one process told of its time, and when it was heard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from workers.messages.channel import Wish
from workers.messages.events import Event
from workers.supervision import Journal

IMPORTS, LOAD, IMPORT = "process/imports", "start/load", "start/import"
STEPS = {
    "importing": LOAD, "spaces": "start/spaces", "started": "start/describe", "operators": "end of the start",
    "compiling": "artifact/compile", "rehearsing": "artifact/rehearse", "verifying": "artifact/verify",
    "packing": "artifact/pack", "result": "end",
}  # fmt: skip
"""Accounts that begin with an event, by its kind or its phase's name; a second "importing" is the network's own."""


@dataclass
class Heard:
    """Of a process whose clock began at `base`; seconds from there. `zero` is that moment on the hearer's clock."""

    base: float
    zero: float = float("inf")
    end: float = 0.0
    phases: dict[str, dict[str, float]] | None = None
    _marks: list[tuple[str, float]] = field(default_factory=list)

    def hear(self, event: Event, now: float) -> None:
        """Events come in batches: the one that was kept the shortest tells `zero` best."""
        at = event["clock"] - self.base
        if at > 0.0:  # the clock of a process that goes on stands at first
            self.zero, self.end = min(self.zero, now - at), max(self.end, at)
        step = STEPS.get(event["name"] if event["kind"] == "phase" else event["kind"])
        if step is not None:
            self._marks.append((IMPORT if step == LOAD and self._marks else step, at))
        if event["kind"] == "finished":
            self.phases = event.get("report", {}).get("phases")

    def steps(self) -> dict[str, float]:
        """Seconds from each step to the next one, the first being imports; what comes behind the last is nobody's here."""
        found: defaultdict[str, float] = defaultdict(float)
        for (step, at), (_, then) in pairwise([(IMPORTS, 0.0), *self._marks]):
            found[step] += then - at
        return dict(found)


class Listened:
    """A journal with somebody listening to what it has kept, who may say what is `wanted` in its place."""

    def __init__(
        self, journal: Journal, hear: Callable[[Event], None], wanted: Callable[[], Wish] | None = None
    ) -> None:
        self._journal, self._hear = journal, hear
        self.heartbeat = wanted or journal.heartbeat

    def write(self, events: Sequence[Event]) -> None:
        self._journal.write(events)
        for event in events:
            self._hear(event)
