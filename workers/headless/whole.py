"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """In place of what was there; OSError where there is no room, and then what was there stays."""
    partial = path.with_suffix(".partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        # Else a power cut could leave the name with nothing in it.
        os.fsync(file.fileno())
    partial.replace(path)
