"""One launcher for one data directory."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class Busy(Exception):
    """Another launcher has it; the text is for the user."""


def take(data_dir: Path) -> int:
    """A descriptor to keep open; the kernel lets go when the process ends, however it ends. Raises Busy."""
    path = data_dir / "launcher.lock"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        says = os.pread(file, 300, 0).decode(errors="replace").strip()
        os.close(file)
        raise Busy(
            f"the site of {data_dir} is running already{f' ({says})' if says else ''}; "
            "end it first, or give this one a DATA_DIR of its own"
        ) from None
    os.ftruncate(file, 0)
    return file


def noted(data_dir: Path) -> str:
    """What the launcher that has it noted; empty where none has it."""
    with suppress(FileNotFoundError, PermissionError), (data_dir / "launcher.lock").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read(300).strip()
    return ""


def note(file: int, text: str) -> None:
    """What a second launcher will be told."""
    os.ftruncate(file, 0)
    os.pwrite(file, text.encode(), 0)
