"""What the parts of methods are made of: a price is of the code that was timed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import workers.engine

ENGINE = Path(workers.engine.__file__).parent
SPACE = "space.py"
ROOMS = {
    "explorer": ("explorer", SPACE),
    "sampler": ("sampler", SPACE),
    "cost_model": ("cost_model", SPACE),
    "scheduler": ("scheduler", "belief"),
}
"""Packages and files of the engine, by role."""


@cache
def digests() -> Mapping[str, str]:
    """Sixteen hexadecimal digits of the sources of each role, as they are now."""
    return {role: _digest(*(ENGINE / room for room in rooms)) for role, rooms in ROOMS.items()}


def _digest(*rooms: Path) -> str:
    found = hashlib.sha256()
    for file in sorted(file for room in rooms for file in (room.rglob("*.py") if room.is_dir() else [room])):
        found.update(str(file.relative_to(ENGINE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]
