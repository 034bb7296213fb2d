"""How much a tree of processes keeps in files: what RLIMIT_FSIZE bounds for one file and nothing bounds for all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

LEAST = 64 << 10
"""Bytes that any name counts for: so a bound on the bytes is one on the number too, and on the time a look takes."""


def _beneath(roots: Iterable[str]) -> Iterator[os.stat_result]:
    waiting = list(roots)
    while waiting:
        # Files come and go while we look; a link counts for itself, as what it names may be outside.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)


def _nameless(pids: Iterable[int]) -> Iterator[os.stat_result]:
    """Files that were removed and are still open."""
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with suppress(OSError):
                    found = os.stat(descriptor.path)
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        yield found


def kept(roots: Iterable[str], pids: Iterable[int], enough: int) -> int:
    """Bytes on disk beneath these directories and in removed files these processes hold; stops counting above `enough`."""
    total, counted = 0, set()
    for looks in (_beneath(roots), _nameless(pids)):
        for found in looks:
            if found.st_nlink != 1 and not stat.S_ISDIR(found.st_mode):
                if (key := (found.st_dev, found.st_ino)) in counted:
                    continue
                counted.add(key)
            total += max(LEAST, 512 * found.st_blocks)
            if total > enough:
                return total
    return total
