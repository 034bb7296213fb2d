"""Files named by their content: temporary file, fsync, its name. What is half written never has a name anybody reads."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workers.messages.whole import sync_directory


class TooLarge(Exception):
    """More bytes than allowed."""


@dataclass(frozen=True)
class Stored:
    """A kept file: its name without ending is `sha256`; `size` in bytes."""

    sha256: str
    size: int


def keep(chunks: Iterable[bytes], folder: Path, ending: str, limit: int | None = None) -> Stored:
    """Writes a stream to folder/<sha256><ending>; where that file is there already, it stays and is young again.

    Raises TooLarge or OSError; then nothing is left.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    descriptor, partial = tempfile.mkstemp(prefix="partial-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if limit is not None and size > limit:
                    raise TooLarge(size)
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        _named(partial, folder / f"{digest.hexdigest()}{ending}")
    finally:
        Path(partial).unlink(missing_ok=True)
    sync_directory(folder)
    return Stored(digest.hexdigest(), size)


def _named(partial: str, final: Path) -> None:
    """Gives a file its name, if no other has it.

    A child that Landlock confines to a file may open that very file: one in its place, of the same bytes and under the
    same name, would be closed to it.
    """
    try:
        os.link(partial, final)
    except OSError:  # it is there, or this file system has no links
        if not final.exists():
            os.replace(partial, final)
        os.utime(final)  # no sweep takes what came just now
