"""Other processes: whether they live, what they answer, and what comes true of them in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def stat_of(pid: int) -> list[str]:
    """What /proc says of it from its state on: that, then its parent; raises OSError when there is none."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def alive(pid: int) -> bool:
    with suppress(OSError):
        return stat_of(pid)[0] not in "ZX"
    return False


def kill(*pids: int, number: int = signal.SIGKILL) -> None:
    """The signal to those that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Answering:
    """A process that answers each line of JSON with one; whatever else it says is kept in `log`."""

    def __init__(self, argv: Sequence[str], log: Path, **options: Any) -> None:
        self._log = log
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, **options
            )
        self.pid = self._process.pid

    def ask(self, question: Any) -> Any:
        self.begin(question)
        return self.finish()

    def begin(self, question: Any) -> None:
        """Asks without waiting; `finish` waits."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"it ended with {self._process.wait()}: {self._log.read_text(errors='replace')[-2500:]}"
        return json.loads(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def eventually(condition: Callable[[], Any], seconds: float = 60.0, what: str = "it") -> Any:
    """The first true value of `condition`; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds:g} s"
        time.sleep(0.02)
    return found


def comes_true(condition: Callable[[], object], seconds: float) -> bool:
    """Whether it does before so many seconds have passed."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())
