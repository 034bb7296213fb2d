"""Which code made something: a digest of its Python files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def hashed(root: Path, rooms: Iterable[str]) -> Any:
    """A SHA-256, to go on with, of the sources in these packages and files beneath `root`, by their names there."""
    found = hashlib.sha256()
    for room in rooms:
        path = root / room
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found
