"""One process of the site: how it is started, when it is started again, how it is ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

TIED = str(Path(__file__).with_name("tied.py"))
LONGEST_WAIT = 30.0  # s between two starts
STEADY = 60.0  # s after which a start counts as a success
LOG_SIZE = 10 << 20  # bytes from which a log begins anew; what it had is kept


@dataclass(frozen=True)
class Plan:
    """What to run. `once`: it may end by itself. `before` is called with the number of failed starts in a row, and may
    raise OSError."""

    name: str
    argv: Sequence[str]
    pass_fds: Sequence[int] = ()
    once: bool = False
    before: Callable[[int], None] = lambda failures: None


@dataclass
class Part:
    """A plan's process. For one thread, the main one: the kernel ties the process to it."""

    plan: Plan
    logs: Path
    environment: dict[str, str]
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    due: float = field(default=0.0)
    _process: subprocess.Popen[bytes] | None = None
    _began: float = 0.0

    @property
    def log(self) -> Path:
        return self.logs / f"{self.plan.name}.log"

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Starts the process; what it says goes to its log."""
        self.plan.before(self.failures)
        self._bound()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", TIED, str(os.getpid()), *self.plan.argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                pass_fds=tuple(self.plan.pass_fds),
                start_new_session=True,  # Ctrl-C in the terminal is for the launcher, which ends the others in order
            )
        self._began = self.clock()

    def look(self) -> str | None:
        """Starts the process when that is due; says so in a sentence when it has ended, once."""
        if self._process is None:
            return self._try() if self.clock() >= self.due else None
        code = self._process.poll()
        if code is None:
            self._bound()
            return None
        self._process = None
        if self.plan.once and code == 0:
            self.due = float("inf")
            return None
        self.failures = 1 if self.clock() - self._began > STEADY else self.failures + 1
        wait = self._wait()
        self.due = float("inf") if self.plan.once else self.clock() + wait
        ended = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with status {code}"
        then = "" if self.plan.once else f"; it is started again in {wait:g} s"
        return f"{self.plan.name} {ended}{then} (see {self.log})"

    def _bound(self) -> None:
        """Of the log. A process may run for months and has it open: the file stays, and begins anew with its next line."""
        with suppress(OSError):
            if self.log.stat().st_size > LOG_SIZE:
                try:
                    shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
                finally:  # where the disk has no room for a copy, above all
                    os.truncate(self.log, 0)

    def _try(self) -> str | None:
        """A machine without room or memory now may have some later: that ends no launcher."""
        try:
            self.start()
        except OSError as error:
            self.failures += 1
            wait = self._wait()
            self.due = self.clock() + wait
            return f"{self.plan.name} cannot be started ({error}); it is tried again in {wait:g} s"
        return None

    def _wait(self) -> float:
        return min(LONGEST_WAIT, 0.5 * 2.0 ** min(self.failures - 1, 10))

    def ask_to_end(self) -> None:
        """SIGTERM, if it runs."""
        if self.running():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)  # type: ignore[union-attr]

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL to it and its group, and waits for it."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
