"""What this machine's kernel offers to hold back a child that reads somebody's file."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

from django.conf import settings


@dataclass(frozen=True)
class Protection:
    """`landlock`: its version, 0 for none. `filtered`: whether system calls are, those for sockets among them."""

    landlock: int
    filtered: bool


@cache
def offered() -> Protection | None:
    """Asked once, of a process of its own: the web side never loads what confines.

    None where that did not say, on a machine that is too busy or out of memory; a page that looks every two seconds must
    not ask it again each time.
    """
    argv = [sys.executable, "-m", "workers.sandbox.protection"]
    try:
        done = subprocess.run(argv, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=10, check=True)
        return Protection(**json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
