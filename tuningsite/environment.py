"""What the environment sets, checked as it is read: a value that means nothing ends any command with one line."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url

from apps.core.amounts import bytes_of, shown
from workers.messages.linker import PIP
from workers.messages.machine import THREADS, most_cores


def text(name: str, default: str = "") -> str:
    return os.environ.get(name) or default


def names(name: str) -> list[str]:
    """Separated by commas."""
    return [one.strip() for one in text(name).split(",") if one.strip()]


def switch(name: str) -> bool:
    """1, or 0 as nothing: what was meant by another word would be off without anybody knowing."""
    value = text(name, "0")
    if value not in ("0", "1"):
        raise _refused(f"{name}={value}", "it is neither 1 nor 0", f"write {name}=1, or leave it out")
    return value == "1"


def size(name: str, default: str, most: int | None = None) -> int:
    """Bytes, `most` at most."""
    value = text(name, default)
    found = bytes_of(value)
    if not found:
        raise _refused(f"{name}={value}", "it is no amount of bytes greater than 0", "write it like 500MB or 50GiB")
    if most is not None and found > most:
        raise _refused(f"{name}={value}", f"more than {shown(most)} cannot be used", f"write {shown(most)} or less")
    return found


def cores() -> float:
    """What `THREADS` and control groups leave."""
    try:
        return most_cores()
    except ValueError as error:
        raise _refused(
            str(error).partition(" must")[0], "it is no number of cores", f"write {THREADS}=4, or leave it out"
        ) from None


def addresses(name: str) -> list[str]:
    """As `str` of an IP address writes them."""
    found = []
    for one in names(name):
        try:
            found.append(str(ip_address(one)))
        except ValueError:
            raise _refused(f"{name}={one}", "it is no IP address", "name each address in numbers") from None
    return found


def origins(name: str) -> list[str]:
    """As browsers write them: Django compares letter by letter."""
    found = []
    for one in names(name):
        try:
            parts = urlsplit(one)
        except ValueError:  # of a bracket that is not closed
            parts = urlsplit("")
        more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
        if parts.scheme not in ("http", "https") or not parts.netloc or more:
            raise _refused(f"{name}={one}", "it is no origin", "write it like https://tuning.example.org")
        usual = {"http": ":80", "https": ":443"}[parts.scheme]
        found.append(f"{parts.scheme}://{parts.netloc.lower().removesuffix(usual)}")
    return found


def level(name: str, default: str) -> str:
    """Of logging."""
    value = text(name, default)
    if value.upper() not in logging.getLevelNamesMapping():
        raise _refused(f"{name}={value}", "there is no such level", "write DEBUG, INFO, WARNING or ERROR")
    return value.upper()


UNANSWERED = {
    "connect_timeout": 10,
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""s, and for the second ms, after which PostgreSQL is given up: one that is gone without a word would else be waited for for a
quarter of an hour, and for two hours once it has had what it is asked for."""


def database(name: str) -> dict[str, Any] | None:
    """As Django takes it; None where none is set. What was written is not repeated: it holds a password."""
    value = text(name)
    if not value:
        return None
    try:
        found: dict[str, Any] = dict(dj_database_url.parse(value))
        if not found["ENGINE"].endswith("postgresql"):
            raise ValueError
    except ValueError:
        raise _refused(
            name,
            "it is no address of a PostgreSQL database",
            "write it like postgres://user:password@host/name; without it the site has a file in DATA_DIR",
        ) from None
    _check_driver(name)
    return {**found, "OPTIONS": {**UNANSWERED, **found.get("OPTIONS", {})}}


def _check_driver(name: str) -> None:
    """Of PostgreSQL: where there is none Django ends every command with a traceback."""
    try:
        import_module("psycopg")
    except ImportError:
        raise _refused(name, "no driver for PostgreSQL is installed", f'{PIP} "psycopg[binary]"') from None


def queue(name: str) -> str:
    """Address of a server that speaks Redis' protocol, empty where none is set. A password in it is not repeated."""
    value = text(name)
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("redis", "rediss", "unix", "memory") and parts.port != 0
    except ValueError:  # of a port that is no number
        good = False
    if value and not good:
        bare = value.rpartition("@")[2]
        raise _refused(f"{name}={bare}", "it is no address of a Redis server", "write it like redis://localhost:6379")
    return value


def directory(name: str, default: Path) -> Path:
    """Made where it is missing, for nobody else."""
    path = Path(text(name) or default).resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = "" if os.access(path, os.W_OK | os.X_OK) else "nothing can be written there"
    except OSError as error:
        reason = f"it cannot be made ({error.strerror})"
    if reason:
        raise _refused(f"{name}={path}", reason, "name a directory of yours")
    return path


def _refused(what: str, reason: str, next_step: str) -> SystemExit:
    return SystemExit(f"{what}: {reason}. Next step: {next_step}.")
