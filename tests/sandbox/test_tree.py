"""Processes that do what they can not to be found, and the tree that ends them all the same."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from workers.sandbox import seccomp, spawn
from workers.sandbox.spawn import Access

needs_filter = pytest.mark.skipif(not seccomp.supported(), reason="this kernel filters no system calls")

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


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def survives(access: Access | None, eventually: Any, *words: str) -> bool:
    """Whether what hid is still there after its tree was ended."""
    with spawn.spawn([sys.executable, "-c", HIDE, *words], access=access, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        said = b""
        while not said.endswith(b" "):
            said += os.read(child.stdout.fileno(), 100)
        hidden = int(said)
        assert eventually(lambda: Path(f"/proc/{hidden}/environ").read_bytes() == b"", 5)
        if "crash" in words:
            assert eventually(child.exited, 5)
        assert alive(hidden)
        child.end(0.0)
    left = not eventually(lambda: not alive(hidden), 0.5)
    if left:
        os.kill(hidden, signal.SIGKILL)
    return left


def test_what_hid_comes_to_the_leader_and_is_ended(eventually: Any) -> None:
    assert not survives(None, eventually)


@needs_filter
@pytest.mark.parametrize("words", [(), ("crash",), ("no-reaper",), ("crash", "no-reaper")])
def test_nothing_leaves_the_session_of_a_confined_leader(words: tuple[str, ...], eventually: Any) -> None:
    assert not survives(Access(), eventually, *words)


@pytest.mark.mutation
@pytest.mark.parametrize("word", ["crash", "no-reaper"])
def test_without_filter_and_reaper_what_hid_is_noticed(word: str, eventually: Any) -> None:
    assert survives(None, eventually, word)


HALF_DEAD = """
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
os.write(1, b"ready")
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def test_a_process_whose_first_thread_left_is_not_taken_for_dead(eventually: Any) -> None:
    with spawn.spawn([sys.executable, "-c", HALF_DEAD], stdout=subprocess.PIPE) as child:
        state = lambda: Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
        assert eventually(lambda: state() == "Z", 10)
        assert child.tree.refresh() == [child.pid]
        assert child.end(0.0) == -signal.SIGKILL
    assert not Path(f"/proc/{child.pid}").exists()
