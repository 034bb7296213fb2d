"""What code in an upload can leave in its directory."""

from __future__ import annotations

import os
from pathlib import Path


def deep(folder: Path, depth: int, name: str = "d") -> None:
    """`depth` folders inside each other beneath this one, with a file in each."""
    folder.mkdir(parents=True, exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
