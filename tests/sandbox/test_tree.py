"""Processes that do what they can not to be found, and the tree that ends them all the same."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kernel import needs
from tests.processes import alive, comes_true, stat_of
from tests.sandbox.test_files import seen
from workers.sandbox import spawn, tree
from workers.sandbox.spawn import Access

# Twice forked, in a session of its own if that is to be had, under another environment, with both parents dead.
HIDE = """
import ctypes, os, signal, sys, time
if "no-reaper" in sys.argv: ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
if not os.fork():
    if not os.fork():
        try: os.setsid()
        except PermissionError: os.setpgid(0, 0)
        os.write(1, b"%d " % os.getpid())
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
if "crash" in sys.argv: os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""


def parent(pid: int) -> int:
    """0 for that of nobody."""
    try:
        return int(stat_of(pid)[1])
    except OSError:
        return 0


def survives(access: Access | None, *words: str) -> bool:
    """Whether what hid is still there after its tree was ended."""
    with spawn.spawn([sys.executable, "-c", HIDE, *words], access=access, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = b""
        while not said.endswith(b" "):
            said += os.read(child.stdout.fileno(), 100)
        hidden = int(said)
        assert comes_true(lambda: Path(f"/proc/{hidden}/environ").read_bytes() == b"", 5)
        assert comes_true(lambda: parent(parent(hidden)) != child.pid, 5), "the one between them is gone"
        if "crash" in words:
            assert comes_true(child.exited, 5)
        assert alive(hidden)
        child.end(0.0)
    left = not comes_true(lambda: not alive(hidden), 0.5)
    if left:
        os.kill(hidden, signal.SIGKILL)
    return left


def test_what_hid_comes_to_the_leader_and_is_ended() -> None:
    assert not survives(None)


@needs("filter")
@pytest.mark.parametrize("words", [(), ("crash",), ("no-reaper",), ("crash", "no-reaper")])
def test_nothing_leaves_the_session_of_a_confined_leader(words: tuple[str, ...]) -> None:
    assert not survives(Access(), *words)


@pytest.mark.mutation
@pytest.mark.parametrize("word", ["crash", "no-reaper"])
def test_without_filter_and_reaper_what_hid_is_noticed(word: str) -> None:
    assert survives(None, word)


HALF_DEAD = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
os.write(1, b"ready")
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def test_a_process_whose_first_thread_left_is_not_taken_for_dead() -> None:
    with spawn.spawn([sys.executable, "-c", HALF_DEAD], stdout=subprocess.PIPE) as child:
        assert comes_true(lambda: stat_of(child.pid)[0] == "Z", 10)
        assert child.tree.refresh() == [child.pid]
        assert child.end(0.0) == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()


# Both bounded: by time, and by number. A comet has another number whenever one looks; a hydra grows under the sword.
STORM = """
import os, sys, time
end = time.monotonic() + 3
def comet():
    while time.monotonic() < end:
        if os.fork(): os._exit(0)
    os._exit(0)
def hydra():
    for _ in range(7): os.fork()
    while time.monotonic() < end: time.sleep(0.1)
    os._exit(0)
for _ in range(3):
    if not os.fork(): {"comet": comet, "hydra": hydra}[sys.argv[1]]()
os.write(1, b"ready")
if "crash" in sys.argv: os._exit(0)
time.sleep(600)
"""


def outlived(*words: str) -> bool:
    """Whether anybody of a storm is there after its ending, and still has its end of the pipe."""
    with spawn.spawn([sys.executable, "-c", STORM, *words], access=Access(), stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(5) == b"ready"
        if "crash" in words:
            while not child.exited():
                time.sleep(0.01)
        child.tree.end(0.0)
        return not select.select([child.stdout], [], [], 0.5)[0]


@pytest.mark.parametrize("words", [("comet",), ("comet", "crash"), ("hydra",)])
def test_nothing_of_a_storm_of_forks_is_left(words: tuple[str, ...]) -> None:
    assert not outlived(*words)


@pytest.mark.mutation
def test_a_storm_that_is_not_stopped_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as blunt:
        blunt.setattr(os, "killpg", os.kill)
        blunt.setattr(tree, "_STORM", 0.5)
        assert any(outlived("comet") for _ in range(5)), "by luck one may be met"
    time.sleep(3)  # until its time is over: nobody finds a comet


# It holds 64 MiB, and so does another that it becomes two of; the second ends or closes itself, if it should.
SHARING = """
held = b"x" * (64 << 20)
def figures(last):
    reading, writing = os.pipe()
    leader = os.fork()
    if not leader:
        pid = os.fork()
        if not pid:
            if last == "closed": ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
            os.write(writing, b"x")
            if last == "ended": os._exit(0)
        else:
            if last == "ended": os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            os.write(writing, b"x")
        time.sleep(600)
    os.read(reading, 1), os.read(reading, 1)
    tree = Tree(leader, f"/sharing-{leader}")
    tree.refresh()
    try: print(tree.resident() >> 20, tree.proportional() >> 20)
    finally: tree.end(0.0)
for last in ("open", "closed", "ended"): figures(last)
"""


def test_memory_that_forks_share_can_be_counted_once_and_what_is_closed_to_us_counts_whole(tmp_path: Path) -> None:
    figures = list(map(int, seen(tmp_path, SHARING)))
    # The one that forked them has a third of it.
    for (resident, proportional), (most, shared) in zip(
        [figures[:2], figures[2:4], figures[4:]], [(128, 42), (128, 64 + 21), (64, 32)], strict=True
    ):
        assert most <= resident < most + 64
        assert shared <= proportional < shared + 32
