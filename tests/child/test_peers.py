"""Libraries that are timed in turns, each in a process that stands still meanwhile."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from tests import zoo
from tests.processes import eventually, stat_of
from workers.child import peers
from workers.child.peers import ArtifactFailed, Peer, undisturbed
from workers.messages.machine import THREADS
from workers.messages.spec import RunSpec

ANSWERS = (
    "import sys, threading\n"
    "def busy():\n"
    "    while True: pass\n"
    "threading.Thread(target=busy, daemon=True).start()\n"
    "print('a warning', flush=True)\n"
    "for turn, _ in enumerate(sys.stdin):\n"
    "    print('{\"seconds\": [%d]}' % turn, flush=True)\n"
)


def peer(script: str) -> Peer:
    return Peer("a library", [sys.executable, "-c", script], order="{}")


def ticks(one: Peer) -> int:
    """Of processor time."""
    return sum(map(int, stat_of(one._process.pid)[11:13]))


def test_it_stands_still_but_when_it_is_asked() -> None:
    with peer(ANSWERS) as one:
        for turn in range(3):
            assert one.seconds(turn) == [turn]
            eventually(lambda: stat_of(one._process.pid)[0] == "T", 5)
            before = ticks(one)
            time.sleep(0.1)
            assert ticks(one) == before, "its threads have nothing of the cores"


@pytest.mark.mutation
def test_one_that_is_not_stopped_is_noticed() -> None:
    with peer(ANSWERS) as one:
        one._process.popen.send_signal(signal.SIGCONT)
        before = ticks(one)
        time.sleep(0.5)
        assert ticks(one) > before


def test_it_is_asked_no_more_often_than_it_is_waited_for() -> None:
    """Else it would answer while another is timed."""
    script = (
        "import os, select\n"
        "while True:\n"
        "    print('{\"seconds\": [%d]}' % len(select.select([0], [], [], 0.05)[0]), flush=True)\n"
        "    os.read(0, 1)\n"
    )
    with Peer("a library", [sys.executable, "-c", script]) as one:
        assert [one.seconds(turn) for turn in range(3)] == [[0], [0], [0]]


def test_what_a_library_says_of_its_progress_is_no_answer() -> None:
    script = (
        "import sys\nsys.stderr.write('{\\n1\\nnull\\nloading 50 %\\r')\nprint('{\"seconds\": [1.0]}', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with peer(script) as one:
        assert one.seconds(0) == [1.0]


def test_last_words_without_an_end_of_line_are_no_answer() -> None:
    with pytest.raises(ArtifactFailed, match="a library failed: step 12"):
        peer("print('step 12', end='')")


def test_one_that_is_killed_says_so() -> None:
    with pytest.raises(ArtifactFailed, match="a library failed: it ended by SIGKILL and said nothing"):
        peer("import os\nos.kill(os.getpid(), 9)")


def test_one_that_ends_between_two_turns_says_why() -> None:
    script = (
        "import sys\nsys.stdin.readline()\nprint('{\"seconds\": []}', flush=True)\n"
        "sys.stdin.readline()\nsys.exit('no memory')"
    )
    with peer(script) as one, pytest.raises(ArtifactFailed, match="a library failed: no memory"):
        one.again()


def test_the_quickest_quarter_of_the_turns_counts() -> None:
    blocks = [[1.0 + turn, 3.0 + turn] for turn in (5, 0, 7, 1, 6, 4, 3, 2)]
    assert undisturbed(blocks).median == 2.5, "of the two turns 1, 3 and 2, 4"
    assert undisturbed(blocks).runs == 4
    assert undisturbed(blocks[:1]).median == 7.0
    assert undisturbed([[3.0], [1.0], [2.0], [4.0], [5.0]]).runs == 3, "of one run nobody knows how it spreads"


def test_both_are_timed_on_as_many_threads_whatever_the_site_may_use_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads, tuned for before the site was given one core. What is only computed takes no more than are here."""
    spec = RunSpec(str(zoo.tiny(tmp_path)), {"kind": "llvm"}, 2, 1e11, 1e10)
    monkeypatch.setenv(THREADS, "1")
    with peers.onnxruntime(spec, tmp_path, runs=1) as timed:
        assert timed.answer["threads"] == spec.threads
    with peers.onnxruntime(spec, tmp_path, runs=0) as computed:
        assert computed.answer["threads"] == 1
