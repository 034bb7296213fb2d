"""Both libraries in turns, and who else measures meanwhile."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workers.child.baseline import LONG, TURNS, in_turns
from workers.child.clock import RunClock
from workers.child.peers import Peer
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock

# Says what it is told that a run takes, and then 1 where nobody else could time anything at that moment, else 0.
TIMED = """
import fcntl, sys
for _ in sys.stdin:
    with open(sys.argv[1]) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            alone = 0
        except BlockingIOError:
            alone = 1
    print('{"seconds": [%s, %d]}' % (sys.argv[2], alone), flush=True)
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[TurnLock]:
    pulse = Pulse(lambda event: None, RunClock(0.0))
    lock = TurnLock(pulse, tmp_path / "own" / "lock")
    lock.files()
    yield lock
    pulse.close()


def peer(lock: TurnLock, seconds: float) -> Peer:
    return Peer("a library", [sys.executable, "-c", TIMED, str(lock.path), str(seconds)], order="{}")


def test_others_measure_between_two_turns_and_nobody_in_one(lock: TurnLock) -> None:
    pairs = []
    with peer(lock, 0.25) as ours, peer(lock, 0.5) as theirs:
        for pair in in_turns(ours, theirs, lock):
            with lock.path.open() as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            pairs.append(pair)
    started, *later = pairs
    assert started == ([0.25, 0.0], [0.5, 0.0])
    assert later == (TURNS - 1) * [([0.25, 1.0], [0.5, 1.0])]


@pytest.mark.parametrize("seconds", [(2 * LONG, 0.25), (0.25, 2 * LONG)])
def test_a_library_whose_first_turn_takes_long_has_no_second(lock: TurnLock, seconds: tuple[float, float]) -> None:
    with peer(lock, seconds[0]) as ours, peer(lock, seconds[1]) as theirs:
        assert len(list(in_turns(ours, theirs, lock))) == 1
