"""Directories that a child's code may have filled, and their removal, which falls to both sides."""

from __future__ import annotations

import errno
import os
import tempfile
from array import array
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SCANS = 64
"""Directories that stay half read while what is in them is removed; one further above is read from its beginning again."""


def remove_tree(path: str | os.PathLike[str]) -> bool:
    """Removes what is there with all that is in it, links unfollowed, however deep it is and whatever its modes; whether
    nothing is left. Nobody else should write in it meanwhile.

    It needs neither paths, which may be longer than the system takes, nor an open directory for every level: of those far
    above only the numbers are kept.
    """
    outside, name = os.path.split(os.path.normpath(path))
    with suppress(OSError):
        _remove(os.open(outside or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), name)
    return not os.path.lexists(path)


@contextmanager
def passing_folder(prefix: str, inside: str | os.PathLike[str] | None = None) -> Iterator[str]:
    """A new directory, its absolute path, gone afterwards whatever was left in it."""
    path = os.path.abspath(tempfile.mkdtemp(prefix=prefix, dir=inside))
    try:
        yield path
    finally:
        remove_tree(path)


def _remove(here: int, name: str) -> None:
    """`name` in the directory that is open as `here`, which is closed. Raises OSError where something stays."""
    numbers, scans = array("Q"), deque[tuple[Generator[str], str]](maxlen=_SCANS)  # of the directories above
    scan, emptied = _of([name]), 0
    try:
        while True:
            full = _first_full(here, scan)
            if full is not None:
                numbers.append(_number(here))
                scans.append((scan, full))
                here = _left(here, _opened(here, full))
                if _number(here) == emptied:  # something keeps coming back
                    raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), full)
                scan = _names(here)
            elif numbers:
                emptied = _number(here)
                here = _left(here, os.open("..", os.O_RDONLY | _FOLDER, dir_fd=here))
                if _number(here) != numbers.pop():
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), name)  # moved: what is above now is not ours
                if scans:
                    scan, done = scans.pop()
                    os.rmdir(done, dir_fd=here)
                else:
                    scan = _names(here) if numbers else _of([name])
            else:
                return
    finally:
        os.close(here)
        for left in (scan, *(above for above, _ in scans)):
            left.close()


def _number(folder: int) -> int:
    return os.fstat(folder).st_ino


def _left(here: int, there: int) -> int:
    """`there`, the other one closed."""
    os.close(here)
    return there


def _of(names: Iterable[str]) -> Generator[str]:
    yield from names


def _names(here: int) -> Generator[str]:
    with os.scandir(here) as entries:
        for entry in entries:
            yield entry.name


def _first_full(here: int, names: Iterable[str]) -> str | None:
    """The first of them that is a directory with something in it; those before it are removed."""
    for name in names:
        try:
            os.unlink(name, dir_fd=here)
        except FileNotFoundError:
            continue
        except IsADirectoryError:
            try:
                os.rmdir(name, dir_fd=here)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                return name
    return None


def _opened(here: int, name: str) -> int:
    """That directory, which its owner may read and write from now on."""
    seen = os.open(name, os.O_PATH | _FOLDER, dir_fd=here)
    try:
        with suppress(PermissionError):  # another's, which may be open to us all the same
            os.chmod(f"/proc/self/fd/{seen}", 0o700)
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=seen)
    finally:
        os.close(seen)
