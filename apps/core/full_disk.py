"""A disk without room: how it shows, and a little that is kept back so that something can still be deleted.

To delete, a database writes first: to its log, or what it is going to change.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import DatabaseError

from apps.core.errors import NoRoom, Refused
from workers.messages.full_disk import NO_ROOM
from workers.messages.whole import whole

log = logging.getLogger(__name__)
RESERVE = 32 << 20
"""Bytes: a few hundred deletions of SQLite at a time."""
_POSTGRESQL_FULL = "53100"
_SQLITE_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)
"""Of a disk, of its owner's quota there, and of the file that SQLite's readers and writers share."""
P = ParamSpec("P")
R = TypeVar("R")


def is_full(error: BaseException | None) -> bool:
    """Whether it says that the disk of the site's files or of its database has no room."""
    if isinstance(error, OSError):
        return error.errno in NO_ROOM
    cause: Any = error.__cause__ if isinstance(error, DatabaseError) else None
    full = getattr(cause, "sqlite_errorcode", None) in _SQLITE_FULL
    return full or getattr(cause, "sqlstate", None) == _POSTGRESQL_FULL


def unwritten(error: OSError) -> type[Refused]:
    """What refuses something that could not be written."""
    return NoRoom if is_full(error) else Refused


def refusal() -> NoRoom:
    """For who asked for something meanwhile."""
    next_step = "delete networks on the Storage page, or have who runs this site make room"
    return NoRoom("the site's disk", "it has no room", next_step)


def unkept(error: DatabaseError, subject: str, reason: str, next_step: str) -> Refused:
    """What refuses something that the database did not take; why it did not, its users are not told."""
    if is_full(error):
        return refusal()
    log.error("%s: %s", subject, reason, exc_info=error)
    return Refused(subject, f"{reason}, the database did not take it", next_step)


def keep_reserve() -> None:
    """Where there is none, and there is room for more than that. Raises OSError."""
    path = _reserve()
    if path.exists() or shutil.disk_usage(path.parent).free < 4 * RESERVE:
        return
    with whole(path) as partial, partial.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, RESERVE)


def with_reserve(deletes: Callable[P, R]) -> Callable[P, R]:
    """Where there is no room for what deletes, the reserve is let go of, and it is tried again."""

    @wraps(deletes)
    def tried(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return deletes(*args, **kwargs)
        except (OSError, DatabaseError) as error:
            if not (is_full(error) and _let_go()):
                raise
        return deletes(*args, **kwargs)

    return tried


def _let_go() -> bool:
    """Whether there was a reserve."""
    try:
        _reserve().unlink()
    except OSError:
        return False
    return True


def _reserve() -> Path:
    return Path(settings.DATA_DIR) / "reserve"
