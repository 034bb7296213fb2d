"""What the environment sets: taken as it was meant, or refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.running import MANAGE
from tuningsite import environment
from workers.networks import limits, torch_archive

MEANT: list[tuple[Callable[[str], Any], str, Any]] = [
    (environment.switch, "1", True),
    (environment.switch, "0", False),
    (environment.switch, "", False),
    (environment.names, " a, b ,", ["a", "b"]),
    (environment.addresses, "10.0.0.2, ::1", ["10.0.0.2", "::1"]),
    (environment.origins, "https://tuning.example.org", ["https://tuning.example.org"]),
    (environment.origins, "https://a:443,http://b:80", ["https://a", "http://b"]),
    (environment.origins, "HTTPS://Tuning.example.org:8443/", ["https://tuning.example.org:8443"]),
    (lambda name: environment.size(name, "20GB"), "", 20_000_000_000),
    (lambda name: environment.size(name, "20GB"), "2GiB", 2 << 30),
    (lambda name: environment.size(name, "20GB", 20_000_000_000), "20GB", 20_000_000_000),
    (lambda name: environment.level(name, "INFO"), "warning", "WARNING"),
    (environment.database, "", None),
    (environment.queue, "", ""),
    (environment.queue, "redis://:word@host:6379/1", "redis://:word@host:6379/1"),
    (environment.queue, "unix:///run/redis.sock", "unix:///run/redis.sock"),
]
MEANINGLESS: list[tuple[Callable[[str], Any], str]] = [
    (environment.switch, "true"),
    (environment.addresses, "nginx"),
    (environment.origins, "tuning.example.org"),
    (environment.origins, "https://tuning.example.org/here"),
    (environment.origins, "https://tuning.example.org?here"),
    (environment.origins, "https://ada@tuning.example.org"),
    (environment.origins, "http://[::1"),
    (lambda name: environment.size(name, "20GB"), "many"),
    (lambda name: environment.size(name, "20GB"), "0"),
    (lambda name: environment.size(name, "20GB", 20_000_000_000), "20.1GB"),
    (lambda name: environment.level(name, "INFO"), "loud"),
    (environment.queue, "localhost:6379"),
    (environment.queue, "redis://localhost:queue"),
]


@pytest.mark.parametrize(("read", "written", "found"), MEANT)
def test_what_is_meant_is_taken(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Any], written: str, found: Any
) -> None:
    monkeypatch.setenv("SETTING", written)
    assert read("SETTING") == found


@pytest.mark.parametrize(("read", "written"), MEANINGLESS)
def test_what_means_nothing_is_refused_with_its_name_value_and_next_step(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Any], written: str
) -> None:
    monkeypatch.setenv("SETTING", written)
    with pytest.raises(SystemExit) as refused:
        read("SETTING")
    assert str(refused.value).startswith(f"SETTING={written}: ")
    assert "Next step: " in str(refused.value)


def test_a_password_in_a_bad_address_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETTING", "postgresss://ada:hidden@host/name")
    with pytest.raises(SystemExit) as refused:
        environment.database("SETTING")
    assert "hidden" not in str(refused.value)
    assert "SETTING: it is no address of a PostgreSQL database" in str(refused.value)
    monkeypatch.setenv("SETTING", "ada:hidden@host:6379")
    with pytest.raises(SystemExit, match=r"^SETTING=host:6379: it is no address of a Redis server"):
        environment.queue("SETTING")


@pytest.mark.parametrize("address", ["sqlite:////srv/site.sqlite3", "sqlite://", "mysql://ada:b@host/name"])
def test_a_database_that_the_site_does_not_run_on_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """SQLite by its address would come without the settings that keep it from being locked."""
    monkeypatch.setenv("SETTING", address)
    with pytest.raises(SystemExit, match=r"no address of a PostgreSQL database.*without it the site has a file"):
        environment.database("SETTING")


def test_a_missing_driver_is_said_with_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETTING", "postgres://ada:hidden@host/name")
    assert (environment.database("SETTING") or {})["HOST"] == "host"
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SystemExit) as refused:
        environment.database("SETTING")
    assert str(refused.value) == (
        f'SETTING: no driver for PostgreSQL is installed. Next step: {sys.executable} -m pip install "psycopg[binary]".'
    )


def test_a_directory_that_cannot_be_made_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SETTING", str(tmp_path / "file" / "beneath"))
    with pytest.raises(SystemExit, match=r"cannot be made \(Not a directory\)\. Next step: name a directory"):
        environment.directory("SETTING", tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "rest"),
    [
        ("TLS", "true", "it is neither 1 nor 0. Next step: write TLS=1, or leave it out."),
        ("UPLOAD_LIMIT", "4GiB", "more than 2.00 GB cannot be used. Next step: write 2.00 GB or less."),
        (
            "REDIS_URL",
            "localhost:6379",
            "it is no address of a Redis server. Next step: write it like redis://localhost:6379.",
        ),
    ],
)
def test_any_command_ends_with_that_line_and_no_traceback(tmp_path: Path, name: str, value: str, rest: str) -> None:
    done = subprocess.run(
        [*MANAGE, "check"],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tuningsite.settings", "DATA_DIR": str(tmp_path), name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == f"{name}={value}: {rest}\n"


def test_no_upload_is_taken_that_cannot_be_read(settings: Any) -> None:
    """It would be uploaded whole and then refused."""
    assert settings.LARGEST_NETWORK == limits.DEFAULT.file_bytes == torch_archive.DEFAULT.file_bytes
    assert settings.UPLOAD_LIMIT <= settings.LARGEST_NETWORK
