"""The measuring lock of a child that has to show signs of life."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workers.child.pulse import Pulse
from workers.sandbox.lock import MeasureLock


class TurnLock(MeasureLock):
    """Says that it waits: another run's turn, or a benchmark's whole run, may outlast any patience."""

    def __init__(self, pulse: Pulse, path: Path | None = None) -> None:
        super().__init__(path)
        self._pulse = pulse

    @contextmanager
    def _holding(self, operation: int) -> Iterator[float]:
        with self._pulse.waiting(super()._holding(operation)) as waited:
            yield waited
