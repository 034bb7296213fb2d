"""Waits for a site that has the key: one process a connection, and what crashes there is that process alone."""

from __future__ import annotations

import argparse
import json
import os
import resource
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path

from workers.messages.device import LEAST_KEY, PORT, keep_alive
from workers.sandbox.confine import die_with_parent, limit
from workers.tvm_backend import runtime
from workers.tvm_backend.nursery import address_space
from workers.tvm_backend.worker import serve

MOST = 64
"""Connections at a time."""
PROVES = 5
"""Seconds in which whoever connects shows that it has the key."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def main() -> int:
    parser = argparse.ArgumentParser(prog="workers.device", description=__doc__)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; a site elsewhere comes through a tunnel"
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--key", type=Path, default=Path.home() / ".tuningsite-device-key", help="file of the key")
    arguments = parser.parse_args()
    try:
        key = kept_key(arguments.key)
        server = opened(arguments.host, arguments.port)
    except OSError as error:
        parser.error(f"{error.filename or arguments.host}: {error.strerror}; name another with --key, --host or --port")
    except (ValueError, OverflowError) as error:  # no text, and no port
        parser.error(f"{error}; name another with --key or --port")
    runtime.load()
    import workers.device.orders  # noqa: F401  every connection is a fork of what is loaded here

    with server:
        port = server.getsockname()[1]
        told = key if sys.stdout.isatty() else f"in {arguments.key}"  # and in no journal
        say(f"waiting on {arguments.host}:{port}; the key is {told}")
        if arguments.host in LOOPBACK:
            there = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
            way = f"ssh -N -o ServerAliveInterval=15 -L {port}:{there}:{port} {socket.gethostname()}"
            say(f"from the site's machine: {way}")
        else:
            say("whoever has the key may run programs here, and nothing on the wire is hidden: trust the network")
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            listen(server, key)
    return 0


def opened(host: str, port: int) -> socket.socket:
    """Waits there; raises OSError."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def kept_key(path: Path) -> str:
    """Drawn when there is none; only who runs this may read it. Raises PermissionError for one that others may read."""
    with suppress(FileNotFoundError):
        found = path.stat()
        key = path.read_text().strip()
        if found.st_uid != os.getuid() or found.st_mode & 0o077 or len(key) < LEAST_KEY:
            raise PermissionError(0, "it is no key that only you may read (chmod 600)", str(path))
        return key
    key = secrets.token_hex(16)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key


def listen(server: socket.socket, key: str) -> None:
    """Until it is interrupted. Every connection's process goes with this one, and its directory, unless this one is killed."""
    folders: dict[int, str] = {}
    server.settimeout(1.0)
    try:
        while True:
            for pid in [pid for pid in folders if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)]:
                ended(pid, folders.pop(pid))
            try:
                taken, _ = server.accept()
            except OSError:  # nobody came, or who came has left
                continue
            with taken:
                if len(folders) < MOST:
                    try:
                        begin(server, taken, key, folders)
                    except OSError as error:
                        say(f"a connection was not taken: {error}")
    finally:
        for pid, folder in folders.items():
            ended(pid, folder)


def ended(pid: int, folder: str) -> None:
    """With what it started; its number is nobody else's until it is waited for."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it may not have a group of its own yet
    os.waitpid(pid, 0)
    shutil.rmtree(folder, ignore_errors=True)


def begin(server: socket.socket, taken: socket.socket, key: str, folders: dict[int, str]) -> None:
    folder = tempfile.mkdtemp(prefix="tuningsite-device-")
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if pid:
        folders[pid] = folder
        return
    try:
        os.setsid()
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        server.close()
        taken.settimeout(None)
        os.chdir(folder)
        served(taken, key, Path(folder))
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def served(taken: socket.socket, key: str, folder: Path) -> None:
    """One connection, until the other side closes it."""
    from workers.device.orders import VERBS, Device, greeting

    keep_alive(taken)
    connection = Connection(taken.detach())
    signal.setitimer(signal.ITIMER_REAL, PROVES)
    try:
        deliver_challenge(connection, key.encode())
        answer_challenge(connection, key.encode())
    except (AuthenticationError, EOFError, OSError):
        return
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    limit(resource.RLIMIT_AS, address_space())
    limit(resource.RLIMIT_CORE, 0)
    connection.send_bytes(json.dumps(greeting(folder)).encode())
    serve(connection, Device(folder), VERBS)


if __name__ == "__main__":
    sys.exit(main())
