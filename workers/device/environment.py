"""The environment of a device's listener and of what it starts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from workers.sandbox.spawn import INHERITED, LOCALE, scrubbed
from workers.sandbox.tree import TREE_VARIABLE

ANEW = "TUNINGSITE_DEVICE_BEGAN_ANEW"
KEPT = (
    TREE_VARIABLE, ANEW, "DATA_DIR",
    "CUDA_HOME", "CUDA_PATH", "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY",
    "LD_PRELOAD", "OPENBLAS_CORETYPE", "PYTHONHOME", "PYTHONUSERBASE",
)  # fmt: skip
"""Beside what every child keeps: by the first, what is started here is found and ended; a site's data stay closed to who is
held back; the others are how CUDA is found and how numpy and Python start on some boards."""


def carried() -> dict[str, str]:
    """Of `KEPT`, what there is."""
    return {name: os.environ[name] for name in KEPT if name in os.environ}


def environment() -> dict[str, str]:
    """That of a child, with what CUDA is found by."""
    return scrubbed(carried())


def begin_anew() -> None:
    """Starts this program again where its environment holds more than it needs: what it was started with the kernel keeps
    (/proc/self/environ), and programs of sites may read it, tokens and all."""
    given = Path("/proc/self/environ").read_bytes().split(b"\0")
    more = {os.fsdecode(one.partition(b"=")[0]) for one in given if one} - {*INHERITED, *LOCALE, *KEPT}
    if more and ANEW not in os.environ:  # once: a Python that is started by a script may always have more
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**environment(), ANEW: "1"})
