"""What tests of several rooms share."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LONG = (
    "browser", "benchmarks", "faults", "headless", "child", "actors", "operations", "tvm_backend", "landscapes", "pipeline",
    "device", "engine",
)  # fmt: skip
"""Rooms with files that take minutes: they come first, or the last of them is waited for on one core."""


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A script that starts the suite behind itself leaves it so, and whatever tests start would not hear Ctrl-C either.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        room = item.path.relative_to(Path(__file__).parent).parts[0]
        return LONG.index(room) if room in LONG else len(LONG)

    items.sort(key=place)


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
def zoo_cache() -> Path:
    """Where test networks are kept between runs; ZOO_CACHE names another place."""
    return Path(os.environ.get("ZOO_CACHE", Path(tempfile.gettempdir()) / f"network-zoo-{os.getuid()}"))


@pytest.fixture(scope="session", autouse=True)
def lock_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """These runs neither wait for other runs on this machine nor make them wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNINGSITE_MEASURE_LOCK", str(tmp_path_factory.mktemp("lock") / "measure.lock"))
        yield


@pytest.fixture(scope="session")
def machine_cache(lock_of_its_own: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that knows this machine already: measuring its peak takes a quarter of a minute."""
    from workers.headless.ask import ask
    from workers.headless.machine import SIGN
    from workers.messages.machine import fingerprint

    cache = tmp_path_factory.mktemp("cache")
    found = ask({"task": "hardware", "peak": False})
    kept = {**{name: found[name] for name in ("hardware", "versions")}, "peak": {"flops": 1e11, "bandwidth": 1e10}}
    kept[SIGN] = fingerprint()
    (cache / "tuningsite").mkdir()
    (cache / "tuningsite" / "machine.json").write_text(json.dumps(kept))
    return cache


@pytest.fixture
def postgres_url(postgres_folder: str, request: pytest.FixtureRequest) -> str:
    """A new, empty database of its own for each test."""
    import psycopg

    name = f"t{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]}"
    with psycopg.connect(host=postgres_folder, user="tests", dbname="postgres", autocommit=True) as own:
        own.execute(f"CREATE DATABASE {name}")
    return f"postgres://tests@{postgres_folder.replace('/', '%2F')}/{name}"


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[str]:
    """Where a PostgreSQL server of our own has its unix socket. Where there is no PostgreSQL: skipped, in CI an error."""
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
            yield folder
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

    for _ in range(600):
        try:
            psycopg.connect(host=folder, user="tests", dbname="postgres").close()
            return
        except psycopg.OperationalError:
            try:
                server.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"PostgreSQL did not start: {Path(folder, 'log').read_text()[-1000:]}")
    pytest.fail("PostgreSQL does not answer after a minute")
