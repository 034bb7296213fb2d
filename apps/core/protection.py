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
def offered() -> Protection:
    """Asked once, of a process of its own: the web side never loads what confines. Raises SubprocessError."""
    argv = [sys.executable, "-m", "workers.sandbox.protection"]
    done = subprocess.run(argv, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=10, check=True)
    return Protection(**json.loads(done.stdout))
