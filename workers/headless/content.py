"""A file by what it holds."""

from __future__ import annotations

import hashlib
from pathlib import Path


def content_hash(path: str | Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
