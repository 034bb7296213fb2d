"""What the site keeps is readable by its own account only, also where an older start or a copy left it open."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(folder: Path) -> None:
    """Closes the database's files and the folder itself to others, as far as they are ours."""
    for file in folder.glob("db.sqlite3*"):
        with suppress(OSError):  # somebody else's, or a journal that is gone again
            if stat.S_ISREG(file.lstat().st_mode):
                file.chmod(0o600)
    with suppress(OSError):
        if folder.stat().st_mode & _OTHERS and _ours(folder):
            folder.chmod(0o700)


def _ours(folder: Path) -> bool:
    """Not a folder that others use too: shared ones are sticky, and what holds more than the site has no key at first."""
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & stat.S_ISVTX or folder in (Path("/"), Path.home()):
        return False
    return (folder / "secret_key").exists() or not any(folder.iterdir())
