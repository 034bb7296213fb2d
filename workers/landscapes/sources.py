"""What the parts of methods are made of: a price is of the code that was timed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import workers.engine
from workers.messages.sources import hashed

ENGINE = Path(workers.engine.__file__).parent
SPACE = "space.py"
ROOMS = {
    "explorer": ("explorer", SPACE),
    "sampler": ("sampler", SPACE),
    "cost_model": ("cost_model", SPACE),
    "scheduler": ("belief", "scheduler"),
}
"""Packages and files of the engine, by role."""


@cache
def digests() -> Mapping[str, str]:
    """Sixteen hexadecimal digits of the sources of each role, as they are now."""
    return {role: hashed(ENGINE, rooms).hexdigest()[:16] for role, rooms in ROOMS.items()}
