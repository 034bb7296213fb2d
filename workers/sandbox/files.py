"""How much a tree of processes keeps in files: what RLIMIT_FSIZE bounds for one file and nothing bounds for all.

A removed file that is mapped and no longer open is not seen: /proc tells its owner's user where it is mapped, and how much it
takes only to who has CAP_CHECKPOINT_RESTORE. It is gone with its process; a device's programs are such files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

DISK = 16 * 2**30
"""Bytes of files that a tuning, a compilation or a device's connection may keep."""
LEAST = 64 << 10
"""Bytes that any name counts for: so a bound on the bytes is one on the number too, and on the time a look takes."""
_GONE = (FileNotFoundError, NotADirectoryError, ProcessLookupError)
"""Files and processes come and go while we look. What else keeps us from looking may be meant to."""


def _beneath(roots: Iterable[str]) -> Iterator[os.stat_result]:
    waiting = list(roots)
    while waiting:
        # A link counts for itself, as what it names may be outside.
        with suppress(*_GONE), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(*_GONE):
                    yield entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)


def _nameless(pids: Iterable[int]) -> Iterator[os.stat_result]:
    """Files that were removed and are still open, by whichever thread: each may have a table of its own."""
    for pid in pids:
        with suppress(*_GONE), os.scandir(f"/proc/{pid}/task") as threads:
            for thread in threads:
                yield from _nameless_of(thread.path)


def _nameless_of(thread: str) -> Iterator[os.stat_result]:
    try:
        with os.scandir(f"{thread}/fd") as descriptors:
            for descriptor in descriptors:
                with suppress(*_GONE):
                    found = os.stat(descriptor.path)
                    if stat.S_ISREG(found.st_mode) and not found.st_nlink:
                        yield found
    except _GONE:
        return
    except PermissionError:
        if not _ends(thread):
            raise


def _ends(thread: str) -> bool:
    """Whether it has left its memory, on its way out or as a zombie: then the kernel says that its files are root's."""
    try:
        with open(f"{thread}/stat", "rb") as file:
            # Behind the name in parentheses, which may hold some itself: the size of the memory is the twenty-first.
            return int(file.read().rpartition(b")")[2].split()[20]) == 0
    except _GONE:
        return True


def kept(roots: Iterable[str], pids: Iterable[int], enough: int) -> int:
    """Bytes on disk beneath these directories and in removed files these processes hold; stops counting above `enough`.

    More than `enough` also where something is there and cannot be looked at.
    """
    total, counted = 0, set()
    try:
        for found in chain(_beneath(roots), _nameless(pids)):
            if found.st_nlink != 1 and not stat.S_ISDIR(found.st_mode):
                if (key := (found.st_dev, found.st_ino)) in counted:
                    continue
                counted.add(key)
            total += max(LEAST, 512 * found.st_blocks)
            if total > enough:
                return total
    except OSError:
        return enough + 1
    return total
