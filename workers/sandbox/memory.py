"""How much memory there is to share out."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup/memory.max")


def memory() -> int:
    """Bytes this machine, or the control group we are in, has."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(physical, int(_CGROUP.read_text()))
    except (OSError, ValueError):  # no control group, or "max"
        return physical
