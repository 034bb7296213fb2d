"""A child that computes under the measuring lock without knowing of it, and who measures meanwhile."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import comes_true
from tests.supervision.test_supervise import TOY, MemoryJournal
from workers.sandbox.lock import MeasureLock
from workers.sandbox.tree import _look
from workers.supervision import Deadlines, Ending, supervise

BRIEF = 6.0
"""s of silence, and in all: a child needs some of them to start."""
QUICK = Deadlines(heartbeat=0.05, batch=0.05, stop=0.1)


class Supervised(threading.Thread):
    """A toy child of `vice` that takes turns at the lock."""

    def __init__(self, lock: Path, deadlines: Deadlines, vice: str, **order: Any) -> None:
        super().__init__()
        self.journal = MemoryJournal()
        self.ending: Ending | None = None
        self._arguments = {"argv": TOY, "deadlines": deadlines, "lock": MeasureLock(lock)}
        self._order = {"vice": vice, **order}
        self.start()

    def run(self) -> None:
        self.ending = supervise(self._order, self.journal, **self._arguments)

    def heard(self) -> list[int]:
        """The processes that compute."""
        return [int(pid) for event in self.journal.events for pid in event["text"].split()]


@contextmanager
def computing(lock: Path) -> Iterator[Supervised]:
    supervised = Supervised(lock, QUICK, "computing")
    try:
        yield supervised
    finally:
        supervised.journal.wanted = "stop"
        supervised.join(20)


def spent(pids: list[int]) -> int:
    return sum(seen.spent for pid in pids if (seen := _look(pid)) is not None)


def test_who_measures_waits_for_a_slice_at_most_and_nothing_of_the_child_computes_meanwhile(
    tmp_path: Path,
) -> None:
    lock = tmp_path / "own" / "lock"
    waits = list[float]()
    with computing(lock) as child:
        assert comes_true(child.heard, 20)
        for _ in range(2):
            before = spent(child.heard())
            assert comes_true(lambda before=before: spent(child.heard()) > before, 20)
            with MeasureLock(lock).exclusive() as waited:
                waits.append(waited)
                still = spent(child.heard())
                time.sleep(0.3)
                assert spent(child.heard()) == still
    assert min(waits) < 3
    assert child.ending is not None
    assert child.ending.kind == "stopped"


def test_a_child_that_nobody_waits_for_is_not_stopped(tmp_path: Path) -> None:
    with computing(tmp_path / "own" / "lock") as child, MeasureLock(tmp_path / "own" / "lock").shared():
        assert comes_true(child.heard, 20)
        stood, until = set(), time.monotonic() + 1.5
        while time.monotonic() < until:
            stood |= {pid for pid in child.heard() if (seen := _look(pid)) is None or not seen.computes}
        assert not stood


def test_time_in_which_others_measure_is_no_silence_and_not_the_childs_and_it_can_be_stopped(tmp_path: Path) -> None:
    lock, brief = tmp_path / "own" / "lock", Deadlines(heartbeat=0.05, batch=0.05, silence=BRIEF, stop=0.1, total=BRIEF)
    with MeasureLock(lock).exclusive():
        waiting, stopped = Supervised(lock, brief, "counting", events=3), Supervised(lock, brief, "counting", events=3)
        waiting.join(BRIEF + 1)
        beats, stopped.journal.wanted = waiting.journal.beats, "stop"
        stopped.join(20)
        assert stopped.ending is not None
        assert (stopped.ending.kind, stopped.journal.events) == ("stopped", [])
        assert beats > 5
        assert waiting.is_alive()
    waiting.join(20)
    assert waiting.ending is not None
    assert (waiting.ending.kind, len(waiting.journal.events)) == ("finished", 4)


def test_a_child_that_goes_on_while_others_measure_is_ended(tmp_path: Path) -> None:
    lock = tmp_path / "own" / "lock"
    with computing(lock) as child:
        assert comes_true(child.heard, 20)
        with MeasureLock(lock).exclusive():
            os.kill(child.heard()[1], signal.SIGCONT)
            child.join(20)
    assert child.ending is not None
    assert (child.ending.kind, child.ending.cause) == ("crashed", "time")
    assert "went on" in child.ending.detail


def test_a_lock_that_cannot_be_had_ends_the_child_and_reaches_the_caller(tmp_path: Path) -> None:
    lock = MeasureLock(tmp_path / "own" / "lock")
    lock.path.parent.rmdir()
    with pytest.raises(FileNotFoundError):
        supervise({"vice": "steady"}, MemoryJournal(), argv=TOY, lock=lock)
