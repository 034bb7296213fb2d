"""Files that children leave in their own directories: archives, and converted networks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from apps.core.content import Stored, TooLarge, keep

LIMIT = 4 << 30
"""Bytes of one archive."""
_CHUNK = 1 << 20


class TooMuch(ValueError):
    """A file of more bytes than allowed."""


def keep_archive(archive: str, work_dir: Path, folder: Path, limit: int = LIMIT, ending: str = ".zip") -> Stored:
    """Copies a child's file, named by its content.

    Raises ValueError for a path that is not a plain file in the child's own directory, TooMuch for one of more than
    `limit` bytes.
    """
    path = Path(archive)
    if path.parent != work_dir:
        raise ValueError(f"the archive {archive!r} is no file of the job's own directory")
    with _opened(path) as file:
        try:
            return keep(_chunks(file), folder, ending, limit)
        except TooLarge:
            raise TooMuch(f"the archive {archive!r} has more than {limit} bytes") from None


def _opened(path: Path) -> BinaryIO:
    """What is looked at and what is read are one file, whatever the child puts in its place meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ValueError(f"{str(path)!r} is no file of the job's own directory ({error.strerror})") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{str(path)!r} is no plain file of the job's own directory")
    return os.fdopen(descriptor, "rb")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
