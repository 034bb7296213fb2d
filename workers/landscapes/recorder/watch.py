"""Progress of a recording, and when it is to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Watch:
    """Who looks on: `told(text)` progress, `wanted()` False to stop, `now()` seconds."""

    told: Callable[[str], None]
    wanted: Callable[[], bool]
    now: Callable[[], float]
    total: int = 0
    done: int = 0
    _began: float = field(default=0.0)
    _measured: int = 0

    def start(self, total: int, done: int) -> None:
        self.total, self.done, self._began, self._measured = total, done, self.now(), 0

    def found(self, count: int) -> None:
        """Measured by an earlier attempt: says nothing about this one's pace."""
        self.done += count

    def advance(self, count: int, where: str) -> None:
        self.done += count
        self._measured += count
        pace = self._measured / max(self.now() - self._began, 1e-9)
        left = max(0, self.total - self.done) / max(pace, 1e-9)
        self.told(f"{where}: {self.done} of {self.total} configurations, {pace:.1f}/s, {left / 60:.0f} min left")
