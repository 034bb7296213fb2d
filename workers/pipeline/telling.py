"""What a run tells, and how often it tells its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from workers.engine.ports import Backend, Clock, Outcome, State
from workers.messages.events import Event
from workers.pipeline.accounts import Accounts, since

CHECKPOINT_SECONDS = 5.0
"""Tuning time between checkpoints: what is measured after one is observed again on resume, only decisions are made anew."""
CHECKPOINT_SHARE = 0.01
"""Of the tuning time that making checkpoints may take: those of hundreds of operators come more rarely."""
CHECKPOINT_LATEST = 60.0
"""Seconds until the next one, however long the last one took: machines stall, and then a run must not lose an hour."""


class Telling:
    """Events go to `emit` in order. What telling takes is charged to `accounts`, but for what the `backend` kept count of."""

    def __init__(self, backend: Backend, accounts: Accounts, clock: Clock, emit: Callable[[Event], None]) -> None:
        self._backend, self._accounts, self._clock, self._emit = backend, accounts, clock, emit
        self._saved, self._interval = clock.now(), CHECKPOINT_SECONDS

    def due(self, now: float) -> bool:
        """Whether it is time for a checkpoint."""
        return now - self._saved >= self._interval

    def tell(self, kind: str, payload: Mapping[str, Any], checkpoint: Callable[[], State] | None = None) -> None:
        """Emits an event, with a checkpoint where one is given."""
        began = self._clock.now()
        event = {"kind": kind, "clock": round(began, 6), **payload}
        if checkpoint is not None:
            with self._accounts.spending("bookkeeping/checkpoint"):
                event["checkpoint"] = checkpoint()
            # Before it is emitted: a journal that is slow to take it would make checkpoints rare.
            needed = (self._clock.now() - began) / CHECKPOINT_SHARE
            self._interval = min(CHECKPOINT_LATEST, max(CHECKPOINT_SECONDS, needed))
        with self.claiming("bookkeeping/checkpoint" if checkpoint is not None else "bookkeeping/events"):
            self._emit(event)
        if checkpoint is not None:
            self._saved = self._clock.now()

    @contextmanager
    def claiming(self, account: str) -> Iterator[list[Outcome]]:
        """Charges the time inside to `account`, but for what the backend kept count of. Of the measuring, "programs" is
        what the outcomes put into it say, "rest" is what lies between programs."""
        before, outcomes, accounts = self._backend.spent(), list[Outcome](), self._accounts
        with self._accounts.spending(account):
            yield outcomes
            counted = since(self._backend.spent(), before)
            measured = counted.pop("measure", 0.0)
            programs = min(measured, sum(outcome.measure_seconds for outcome in outcomes))
            parts = {"measure/programs": programs, "measure/rest": measured - programs}
            for name, seconds in {**counted, **parts}.items():
                accounts.claim(name, seconds)
