"""`up` starts beside no other database than the files in DATA_DIR are of."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from apps.operations.belongings import FILE, check_database, note_database
from tests.operations.test_commands import call
from tests.running import Running

needs_database = pytest.mark.django_db


@pytest.fixture
def library(data_dir: Path) -> Path:
    """One of two hours ago, which a sweep removes if no row names it."""
    return kept(data_dir)


def kept(data: Path) -> Path:
    path = data / "artifacts" / f"{'0a' * 32}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"a library")
    os.utime(path, (time.time() - 7200,) * 2)
    return path


@needs_database
def test_files_of_this_database_are_no_hindrance(library: Path) -> None:
    check_database()  # of a version that noted nothing
    note_database()
    check_database()


@needs_database
def test_files_of_another_database_are_left_to_it(library: Path, data_dir: Path) -> None:
    note_database()
    (data_dir / FILE).write_text("PostgreSQL's tuning at db.example.org:5432\n")
    with pytest.raises(
        CommandError, match=r"those are of PostgreSQL's tuning at db\.example\.org:5432: set the DATABASE_URL"
    ):
        check_database()
    library.unlink()
    check_database()


@needs_database
def test_files_beside_an_empty_database_are_not_its_own(library: Path) -> None:
    MigrationRecorder(connection).migration_qs.all().delete()
    with pytest.raises(
        CommandError, match="and that is empty: set the DATABASE_URL that they belong to, restore its dump"
    ):
        check_database()


def test_up_refuses_and_removes_nothing(tmp_path: Path) -> None:
    site = Running(tmp_path)
    path = kept(site.data)
    done = call(site, "up")
    assert done.returncode != 0
    assert "has networks and libraries, the database is SQLite's, and that is empty" in done.stderr
    assert path.exists()
