"""Whose the files in DATA_DIR are: beside another database they would be nobody's, and the next sweep would remove them."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from workers.messages.whole import write_whole

FILE = "database"
"""In DATA_DIR; it says which one the files there belong to."""


def check_database() -> None:
    """Raises CommandError where there are networks or libraries of another database, or where this one is still empty."""
    data = Path(settings.DATA_DIR)
    if not any(chain(data.glob("networks/*.*"), data.glob("artifacts/*.zip"))):
        return
    told, ours = _told(data / FILE), _name()
    if told in ("", ours) and MigrationLoader(connection).applied_migrations:
        return
    lacks, moved = "and that is empty", ""
    if told not in ("", ours):
        lacks, moved = f"and those are of {told}", f"; where that one was moved or renamed, delete {data / FILE}"
    raise CommandError(
        f"{data} has networks and libraries, the database is {ours}, {lacks}: set the DATABASE_URL that they belong to, "
        f"restore its dump, or name another DATA_DIR{moved}"
    )


def note_database() -> None:
    """Where there is room for it; a site starts on a full disk too."""
    path = Path(settings.DATA_DIR) / FILE
    if _told(path) != _name():
        with suppress(OSError):
            write_whole(path, f"{_name()}\n")


def _told(path: Path) -> str:
    try:
        return path.read_text().strip()
    except FileNotFoundError:  # made by an earlier version
        return ""


def _name() -> str:
    """Without its password. SQLite's lies in DATA_DIR, wherever that is."""
    own = connection.settings_dict
    if connection.vendor == "sqlite":
        return "SQLite's"
    return f"{connection.display_name}'s {own['NAME']} at {own['HOST'] or 'localhost'}:{own['PORT'] or 5432}"
