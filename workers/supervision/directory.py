"""A journal in a directory: one event a line, for runs without a database.

journal.jsonl holds the events, checkpoint.json the last checkpoint that came with one, `lock` keeps a second writer out, and
the word in `control` (pause or stop), written by anybody, is what the user wants; opening the journal clears it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.messages.causes import UNBUILT
from workers.messages.channel import Control, LeaseLost
from workers.messages.events import Event, decode, encode
from workers.messages.orders import SLOT_TOLD, SlotTakenUp, slot_taken_up
from workers.messages.spec import AUTO
from workers.messages.whole import sync_directory, whole

JOURNAL, CONTROL = "journal.jsonl", "control"


class DirectoryBusy(RuntimeError):
    """Another process writes to this directory."""


class DamagedJournal(RuntimeError):
    """A line that is not the last one is not an event, or the checkpoint is none."""


@dataclass(frozen=True)
class History:
    """What a new attempt needs: the last checkpoint, every measurement with its slot, what `slot_taken_up` gives of
    each slot, and the operators (of their event) and the layout, as they were told last; none and AUTO before."""

    checkpoint: Any = None
    measurements: list[dict[str, Any]] = field(default_factory=list)
    slots: list[SlotTakenUp] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=dict)
    clock: float = 0.0
    operators: list[dict[str, Any]] = field(default_factory=list)
    layout: str = AUTO


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def events_in(path: Path, being_written: bool = True) -> Iterator[Event]:
    """Every event in a journal's directory, oldest first. While somebody may write to it, half a last line is left out.

    OSError when there is no journal, DamagedJournal for a broken line.
    """
    with open(path / JOURNAL, "rb") as file:
        for number, line in enumerate(file, 1):
            if being_written and not line.endswith(b"\n"):
                return
            try:
                yield decode(line.decode())
            except ValueError as error:
                raise DamagedJournal(
                    f"{file.name}, line {number}: {error}; somebody changed the file: restore it or start anew"
                ) from error


def holds_journal(path: Path) -> bool:
    """Whether a run was started there."""
    return (path / JOURNAL).is_file()


def in_use(path: Path) -> bool:
    """Whether a process has the journal there open."""
    with suppress(FileNotFoundError), open(path / "lock", "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class DirectoryJournal:
    """Journal of one run in `path`. What `write` returned from survives a crash; half a line at the end is cut off.

    Raises DirectoryBusy when another process has it open, DamagedJournal for a broken line that is not the last and for a
    broken checkpoint.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise DirectoryBusy(
                f"{self.path} is in use by another run: wait for it, or name another directory"
            ) from None
        self._file = os.open(self.path / JOURNAL, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._size = self._mend()
            sync_directory(self.path)
            self.clear_control()
            self.trials = self.measured = 0
            for event in self.events():
                self._count(event)
            self._checkpoint()
        except BaseException:
            self.close()
            raise

    def _mend(self) -> int:
        """Cuts a torn last line off; returns the length that is left."""
        size = os.fstat(self._file).st_size
        end = size
        while end:
            start = max(0, end - (1 << 16))
            found = os.pread(self._file, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end != size:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return end

    def write(self, events: Sequence[Event]) -> None:
        """Appends the events and waits until they are on the disk. OSError when there is no room: then none is kept."""
        if self._file < 0:
            raise LeaseLost(f"the journal in {self.path} is closed")
        checkpoints = [event["checkpoint"] for event in events if event.get("checkpoint") is not None]
        kept = [{name: value for name, value in event.items() if name != "checkpoint"} for event in events]
        content = "".join(encode(event) + "\n" for event in kept).encode()
        try:
            os.lseek(self._file, self._size, os.SEEK_SET)
            _write_all(self._file, content)
            os.fsync(self._file)
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(content)
        if checkpoints:
            self._keep(checkpoints[-1])
        for event in events:
            self._count(event)

    def _count(self, event: Event) -> None:
        """`measured` are all measurements kept, `trials` those of what was built."""
        rows = event.get("measurements", ())
        self.measured += len(rows)
        self.trials += sum(row.get("cause") not in UNBUILT for row in rows)

    def _keep(self, checkpoint: Any) -> None:
        """In place of the one before: a journal of all of them would grow by gigabytes a day. After the events it was told
        with, for it knows them; where there is no room the one before stays, and a resumed run folds more anew."""
        state = {"size": self._size, "state": checkpoint}
        with suppress(OSError), whole(self.path / "checkpoint.json") as partial:
            with partial.open("w", encoding="utf-8") as file:
                json.dump(state, file, separators=(",", ":"), allow_nan=False)

    def _checkpoint(self) -> Any:
        """None too where it knows more than the journal, which was put back to an earlier state."""
        path = self.path / "checkpoint.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            return kept["state"] if kept["size"] <= self._size else None
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedJournal(f"{path}: {error}; remove it, and the run folds its measurements anew") from error

    def heartbeat(self) -> Control:
        """What stands in the control file; anything else than pause or stop is continue."""
        try:
            word = (self.path / CONTROL).read_text().strip()
        except FileNotFoundError:
            return "continue"
        return "pause" if word == "pause" else "stop" if word == "stop" else "continue"

    def clear(self) -> None:
        """Forgets every event."""
        (self.path / "checkpoint.json").unlink(missing_ok=True)  # first: it would know what is in no journal
        sync_directory(self.path)
        os.ftruncate(self._file, 0)
        os.fsync(self._file)
        self._size = self.trials = self.measured = 0

    def clear_control(self) -> None:
        """Forgets an earlier pause or stop."""
        (self.path / CONTROL).unlink(missing_ok=True)

    def events(self) -> Iterator[Event]:
        """Every event kept, oldest first."""
        return events_in(self.path, being_written=False)  # opening it has mended the end

    def history(self) -> History:
        """What a new attempt goes on from."""
        measurements: list[dict[str, Any]] = []
        slots: list[SlotTakenUp] = []
        spent: dict[str, float] = {}
        clock = 0.0
        operators: list[dict[str, Any]] = []
        layout = AUTO
        checkpoint: Any = None
        for event in self.events():
            checkpoint = event.get("checkpoint") or checkpoint  # of journals from when they stood there
            clock = max(clock, float(event.get("clock", 0.0)))
            if event["kind"] == "batch":
                measurements += [{**row, "slot": event.get("slot", 0)} for row in event.get("measurements", ())]
                spent = event.get("spent", spent)
            elif event["kind"] == "slot":
                slots.append(slot_taken_up(*(event[name] for name in SLOT_TOLD)))
            elif event["kind"] == "operators":
                operators = event["operators"]
            elif event["kind"] == "started":
                layout = event["layout"]
        checkpoint = self._checkpoint() or checkpoint
        return History(checkpoint, measurements, slots, spent, clock, operators, layout)

    def close(self) -> None:
        """Lets another process have the directory; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            os.close(self._lock)
            self._file = self._lock = -1

    def __enter__(self) -> DirectoryJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
