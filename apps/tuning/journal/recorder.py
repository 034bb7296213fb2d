"""What all recorders do, and what those of a run share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.core.content import Stored
from apps.core.ids import digest
from apps.tuning import doorbell
from apps.tuning.journal.archives import Archives
from apps.tuning.journal.inserting import insert
from apps.tuning.leases import Claim
from apps.tuning.models import Event, TuningRun
from apps.tuning.transitions import Numbers
from workers.messages.events import Event as Told

_COLUMNS = ("run", "seq", "kind", "clock", "payload", "digest")


class Recorder:
    """Records one batch of one job, inside its transaction; made anew for each."""

    def record(self, events: Sequence[Told], archives: Archives) -> None:
        """Keeps what of the batch is not kept yet; `archives` are files that were copied for it."""
        raise NotImplementedError


class RunRecorder(Recorder):
    """Numbers, events and figures of a run. `run` is read under the lock of its counter."""

    def __init__(self, held: Claim, run: TuningRun) -> None:
        self._held = held
        self._numbers = Numbers(run.job_id)
        self._first = self._numbers.last
        self.run = TuningRun.objects.get(pk=run.pk)
        self._events: list[tuple[Any, ...]] = []

    def record(self, events: Sequence[Told], archives: Archives) -> None:
        fresh = self._fresh(events)
        self.expect({made: events[number] for made, number in fresh.items()})
        for made, number in fresh.items():
            self.take(events[number], made, archives.get(number))
        self.close()

    def expect(self, events: Mapping[str, Told]) -> None:
        """Reads what `take` will ask of the events, by their digests, in as few queries as there may be."""

    def take(self, event: Told, made: str, archive: Stored | None) -> None:
        """One event that is new, and its digest; events come in order."""
        raise NotImplementedError

    def close(self) -> None:
        """Writes what was gathered."""
        if self._numbers.last == self._first:
            return
        insert(Event, _COLUMNS, self._events)
        self._numbers.save()
        self.run.save()
        doorbell.ring_after_commit(self.run.pk, self._numbers.last)

    def keep(self, kind: str, made: str, clock: float, payload: dict[str, Any]) -> int:
        """Gives the event its number; call it after those of its measurements."""
        seq = self._numbers.next()
        payload = {"kind": kind, "seq": seq, "clock": clock, **payload}
        self._events.append((self.run.pk, seq, kind, clock, payload, made))
        return seq

    def _fresh(self, events: Sequence[Told]) -> dict[str, int]:
        """Places of the events that were never recorded under this fence, by digest."""
        made: dict[str, int] = {}
        for number, event in enumerate(events):
            plain = {name: value for name, value in event.items() if name != "checkpoint"}
            made.setdefault(digest(str(self._held.job_id), self._held.fence, plain), number)
        # In no order: for one by number SQLite would look through all events of the run.
        known = set(Event.objects.filter(run=self.run, digest__in=made).order_by().values_list("digest", flat=True))
        return {digest_: number for digest_, number in made.items() if digest_ not in known}
