"""The host-wide measuring lock: exclusive around timed batches, shared for work that would disturb them.

Two files make a turnstile. Everybody passes the gate one at a time and waits for the lock with the gate in hand, so
whoever comes later queues behind a waiting writer; a writer that comes straight back queues behind the readers it
kept waiting. The kernel drops both when the process dies.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATH_VARIABLE = "TUNINGSITE_MEASURE_LOCK"


def default_path() -> Path:
    """The lock of this user on this host: TUNINGSITE_MEASURE_LOCK, or a fixed place in /tmp.

    Neither TMPDIR nor XDG_RUNTIME_DIR decide: a service and a shell of one user have different ones, and would then
    time kernels at once.
    """
    named = os.environ.get(PATH_VARIABLE)
    return Path(named) if named else Path("/tmp") / f"tuningsite-{os.getuid()}" / "measure.lock"


def private_directory(path: Path) -> None:
    """Makes it, or raises PermissionError where others may write in it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(
            f"lock directory {path} is not ours alone: remove it, or name a lock in another one in {PATH_VARIABLE}"
        )


def _open(path: Path) -> int:
    """To read, with which flock is content: who may do no more fills no disk through it."""
    return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _take(path: Path, operation: int) -> int:
    while True:
        try:
            file = _open(path)
        except PermissionError as error:
            # As something that passes: the next attempt's process is let open the new file.
            raise OSError(
                f"measuring lock {path} may not be opened ({error.strerror}): where it was removed meanwhile, "
                "the next attempt opens the new one; where it is another user's, remove it"
            ) from error
        try:
            fcntl.flock(file, operation)
            # A cleaner of temporary files may have removed it while we waited: then we hold a lock nobody else can see.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), os.stat(path)):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


class MeasureLock:
    """Host-wide lock for one thread of a process; not re-entrant: RuntimeError, or it would wait for itself forever."""

    def __init__(self, path: str | os.PathLike[str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = Path(path) if path is not None else default_path()
        self._gate = self.path.with_name(self.path.name + ".gate")
        self._clock = clock
        self._held = False
        private_directory(self.path.parent)

    def files(self) -> tuple[str, ...]:
        """Made where they are missing, for a process that may open them and make none. Raises OSError."""
        paths = (self._gate, self.path)
        for path in paths:
            os.close(_open(path))
            os.utime(path)  # else a cleaner of temporary files takes them for old, from who may make no others
        return tuple(map(str, paths))

    @contextmanager
    def exclusive(self) -> Iterator[float]:
        """Nobody else holds the lock inside; yields the seconds waited."""
        with self._holding(fcntl.LOCK_EX) as waited:
            yield waited

    @contextmanager
    def shared(self) -> Iterator[float]:
        """Nobody times a kernel inside, others may share; yields the seconds waited."""
        with self._holding(fcntl.LOCK_SH) as waited:
            yield waited

    def wanted(self) -> bool:
        """Whether somebody waits for it."""
        gate = _open(self._gate)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(gate)
        return False

    @contextmanager
    def _holding(self, operation: int) -> Iterator[float]:
        if self._held:
            raise RuntimeError(f"measuring lock {self.path} is already held by this process")
        began = self._clock()
        self._held = True
        try:
            gate = _take(self._gate, fcntl.LOCK_EX)
            try:
                lock = _take(self.path, operation)
            finally:
                os.close(gate)
            try:
                yield self._clock() - began
            finally:
                os.close(lock)
        finally:
            self._held = False
