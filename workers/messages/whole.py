"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Where to write what shall stand at `path`: in place of what was there, once it is on the disk.

    Where the block or the disk fails, what was there stays, and of what was written nothing is left.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        with partial.open("rb") as written:
            # Else a power cut could leave the name with nothing in it.
            os.fsync(written.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def write_whole(path: Path, text: str) -> None:
    """In place of what was there; OSError where there is no room, and then what was there stays."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def sync_directory(path: Path) -> None:
    """Names that were given or taken in it are so after a power cut too."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
