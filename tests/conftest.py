"""What tests of several rooms share."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_unconfigure() -> None:
    """The data of the tests' settings goes with them."""
    folder = os.environ.get("DATA_DIR", "")
    if Path(folder).name.startswith("tuningsite-tests-"):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def data_dir(settings: Any, tmp_path: Path) -> Path:
    """A DATA_DIR of this test's own."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    return settings.DATA_DIR


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server of our own on a unix socket. Where there is none: skipped, in CI an error."""
    programs = {name: _program(name) for name in ("initdb", "postgres")}
    if None in programs.values():
        reason = "PostgreSQL's initdb and postgres are not installed"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    account = _account()
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        if account:
            shutil.chown(folder, account)
        cluster, options = f"{folder}/data", {"user": account, "cwd": folder, "env": {"PATH": os.environ["PATH"]}}
        made = [
            programs["initdb"],
            "-D",
            cluster,
            "-U",
            "tests",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(made, check=True, capture_output=True, **options)
        quick = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "listen_addresses=", "-k", folder]
        with open(f"{folder}/log", "wb") as log:
            server = subprocess.Popen([programs["postgres"], "-D", cluster, *quick], stdout=log, stderr=log, **options)
        try:
            _wait(folder, server)
            yield f"postgres://tests@{folder.replace('/', '%2F')}/postgres"
        finally:
            server.terminate()
            server.wait(30)


def _program(name: str) -> str | None:
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(beside[-1]) if beside else None)


def _account() -> str | None:
    """PostgreSQL refuses to be run by root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _wait(folder: str, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(100):
        try:
            psycopg.connect(host=folder, user="tests", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            try:
                server.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"PostgreSQL did not start: {Path(folder, 'log').read_text()[-1000:]}")
    pytest.fail("PostgreSQL does not answer after 10 s")
