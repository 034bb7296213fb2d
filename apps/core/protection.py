"""What this machine's kernel offers to hold back a child that reads somebody's file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass

from django.conf import settings

SCOPED = 6
"""The Landlock version (Linux 6.12) from which on a child can signal no process but its own."""


@dataclass(frozen=True)
class Protection:
    """`landlock`: its version, 0 for none. `filtered`: whether system calls are, those for sockets among them."""

    landlock: int
    filtered: bool

    @property
    def scoped(self) -> bool:
        """Whether it keeps a child's signals in."""
        return self.landlock >= SCOPED


AGAIN = 60.0
"""Seconds after which a process that did not say is asked again: a page looks every two."""


def offered() -> Protection | None:
    """Asked of a process of its own, once it said: the web side never loads what confines. None where it did not, on a machine
    that is too busy or out of memory."""
    global _known, _asked
    if _known is None and time.monotonic() - _asked >= AGAIN:
        _asked = time.monotonic()
        _known = _said()
    return _known


_known: Protection | None = None
_asked = -AGAIN


def _said() -> Protection | None:
    argv = [sys.executable, "-m", "workers.sandbox.protection"]
    try:
        done = subprocess.run(argv, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=10, check=True)
        return Protection(**json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
