"""Waits for a site that has the key: one process a connection, and what crashes there is that process alone."""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from pathlib import Path
from typing import IO

from workers.device.environment import begin_anew
from workers.messages.device import LEAST_KEY, PORT, keep_alive, proofs
from workers.messages.folders import remove_tree
from workers.sandbox import threads
from workers.sandbox.confine import die_with_parent
from workers.sandbox.files import DISK, kept
from workers.sandbox.landlock import SCOPED
from workers.sandbox.protection import offered
from workers.sandbox.spawn import ROOT
from workers.sandbox.tree import TREE_VARIABLE, Tree
from workers.tvm_backend import runtime
from workers.tvm_backend.worker import serve

MOST, UNPROVEN = 64, 16
"""Connections at a time, beside them those that have not shown yet that they have the key."""
HEEDED = 4 * MOST
"""Messages of connections that are heeded before the next connection is taken."""
LOOK, SHARE = 5.0, 0.02
"""Seconds between looks at what connections keep in files, and how much of the time these may take."""
PROVES, PROVEN = 5, "proven"
"""Seconds in which whoever connects shows that it has the key, and the word of who has seen that."""
FOLDER, LOCK = "tuningsite-device-", "lock"
"""How the names of listeners' folders begin, and what a listener that lives holds in its own."""
STARTS = 60
"""Seconds for CUDA."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DRIVER = "libcuda.so.1"
PROBE = (
    "from workers.tvm_backend import nvrtc, runtime; runtime.load(); runtime.load_cuda(); nvrtc.check()\n"
    "from workers.tvm_backend.cuda.hardware import detect_gpu; detect_gpu()"
)
"""What a process that ends at once asks for."""
NEEDED, OLDEST = ("numpy", *runtime.LOADING), (3, 11)


@dataclass(frozen=True)
class Key:
    """Its letters, which a process can forget, and the file that keeps them."""

    letters: bytearray
    path: Path


def parser_of_words() -> argparse.ArgumentParser:
    """Leaves where this Python is too old: what confines programs would fail once all is tuned."""
    parser = argparse.ArgumentParser(prog="workers.device", description=__doc__)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; a site elsewhere comes through a tunnel"
    )
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--gpu", action="store_true", help="time on this machine's NVIDIA GPU, not on its processor")
    parser.add_argument("--key", type=Path, default=Path.home() / ".tuningsite-device-key", help="file of the key")
    if sys.version_info < OLDEST:
        parser.error(f"Python {'.'.join(map(str, OLDEST))} or newer is needed, and this is {sys.version.split()[0]}")
    return parser


def main() -> int:
    parser = parser_of_words()
    arguments = parser.parse_args()
    begin_anew()
    try:
        key = kept_key(arguments.key)
        server = opened(arguments.host, arguments.port)
    except OSError as error:
        parser.error(f"{error.filename or arguments.host}: {error.strerror}; name another with --key, --host or --port")
    except (ValueError, OverflowError) as error:  # no text, and no port
        parser.error(f"{error}; name another with --key or --port")

    with server:
        try:
            runtime.load()
            import workers.device.orders  # noqa: F401  every connection is a fork of what is loaded here
        except ModuleNotFoundError as error:
            parser.error(f"there is no Python package {error.name!r} here; {installation()}")
        if arguments.gpu and (lacking := without_gpu()):
            parser.error(f"--gpu: {lacking}; leave it out to time on the processor")
        if arguments.gpu:
            load_gpu(key.path)
        port = server.getsockname()[1]
        say(
            f"waiting on {arguments.host}:{port}; the key is "
            f"{key.letters.decode() + ', ' if sys.stdout.isatty() else ''}in {arguments.key}"  # and is in no journal
        )
        if arguments.host in LOOPBACK:
            there = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
            way = f"ssh -N -o ServerAliveInterval=15 -L {port}:{there}:{port} {socket.gethostname()}"
            say(f"from the site's machine: {way}")
        else:
            say("whoever has the key may run programs here, and nothing on the wire is hidden: trust the network")
        if lacking := offered().lacks(SCOPED):
            say(f"programs of sites are not fully held back here: {offered()}; it takes {lacking}")
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # a terminal that is closed ends it too, but under nohup
                signal.signal(number, leave)
        with suppress(KeyboardInterrupt):
            listen(server, key, arguments.gpu)
    return 0


def driver() -> bool:
    """Whether there is NVIDIA's."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return False
    return True


def without_gpu() -> str:
    """Why no GPU can be used here, "" where one can. CUDA is started in a process of its own: what has started it cannot be
    forked, and the driver may make its devices only then, which who is confined cannot have it do."""
    if not driver():
        return f"there is no NVIDIA driver here ({DRIVER})"
    done = subprocess.run([sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, check=False)
    *_, said = ["", *done.stderr.strip().splitlines()]
    return said if done.returncode else ""


def load_gpu(hidden: Path) -> None:
    """What every connection is forked with; says where that does not do once it is held back."""
    runtime.load_cuda()
    if lacking := without_confined_gpu(hidden):
        say(f"programs of sites, which are held back, may find no GPU: {lacking}")


def without_confined_gpu(hidden: Path) -> str:
    """Why CUDA does not start where a connection's process is held back, "" where it does: in one that is as they are."""
    from workers.device.orders import Device

    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix=FOLDER) as folder, os.fdopen(reading) as said:
        if not (pid := os.fork()):
            try:
                signal.alarm(STARTS)
                device = Device(Path(folder), lambda pid, name: None, gpu=True)
                device.confine(hidden)
                device.hardware(peak=False)
            except Exception as error:  # TVM raises whatever its C++ throws
                os.write(writing, (str(error).strip() or type(error).__name__).encode())
            finally:
                os._exit(0)
        os.close(writing)
        *_, told = ["", *said.read().splitlines()]
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return told or (f"its process was ended by signal {-status}" if status else "")


def leave(number: int, frame: object) -> None:
    """Once: a shell that goes and its terminal both say so, and what is being ended is ended in order."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def opened(host: str, port: int) -> socket.socket:
    """Waits there; raises OSError."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def installation() -> str:
    """How to have what is needed, in the versions of this project."""
    pins = (Path(ROOT) / "requirements.txt").read_text().splitlines()
    return f"run: {sys.executable} -m pip install {' '.join(pin for pin in pins if pin.split('==')[0] in NEEDED)}"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def kept_key(path: Path) -> Key:
    """Drawn when there is none; only who runs this may read it. Raises PermissionError for one that others may read."""
    with suppress(FileNotFoundError):
        found = path.stat()
        key = path.read_text().strip()
        if found.st_uid != os.getuid() or found.st_mode & 0o077 or len(key) < LEAST_KEY:
            raise PermissionError(0, "it is no key that only you may read (chmod 600)", str(path))
        return Key(bytearray(key.encode()), path.resolve())
    key = secrets.token_hex(16)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return Key(bytearray(key.encode()), path.resolve())  # a connection's process works elsewhere


def listen(server: socket.socket, key: Key, gpu: bool = False) -> None:
    """Until it is interrupted. Every connection's process goes with this one, and its directory; where this one is killed, the
    next one removes that."""
    with held_folder() as (base, lock):
        take(server, key, gpu, base, lock)


@contextmanager
def held_folder() -> Iterator[tuple[str, IO[str]]]:
    """For the connections' own, and the lock on it; those that nobody holds any more are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        with suppress(OSError):
            found = left.lstat()  # anybody may make links there
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                with (left / LOCK).open() as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(left)
    base = tempfile.mkdtemp(prefix=FOLDER)
    try:
        with Path(base, LOCK).open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield base, held
    finally:
        remove_tree(base)


def take(server: socket.socket, key: Key, gpu: bool, base: str, lock: IO[str]) -> None:
    """Connections, one after the other, each with a process and a folder in `base`."""
    folders: dict[int, str] = {}
    unproven: list[int] = []
    due = 0.0
    server.setblocking(False)
    # Whole messages, and to nobody else: a socket for datagrams would reach whoever has a name.
    hears, says = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        while True:
            for pid in [pid for pid in folders if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)]:
                end(pid, folders)
            unproven = [pid for pid in unproven if pid in folders]
            if time.monotonic() >= due:
                due = end_full(folders)
            if hears in wait([server, hears], 1.0):
                heed(hears.recv(256), folders, unproven)
            with suppress(OSError), server.accept()[0] as taken:  # nobody came, or who came has left
                if len(folders) - len(unproven) >= MOST:
                    continue
                heed_all(hears, folders, unproven)
                if len(unproven) >= UNPROVEN:  # who knocks and says nothing keeps nobody out
                    end(unproven.pop(0), folders)
                unproven += begin(taken, key, gpu, base, folders, says, server, hears, lock)
    finally:
        for pid in list(folders):
            end(pid, folders)
        for one in (hears, says):
            one.close()


def heed_all(hears: socket.socket, folders: dict[int, str], unproven: list[int]) -> None:
    """What was said meanwhile; a program that says more than `HEEDED` keeps nobody else waiting."""
    for _ in range(HEEDED):
        if not wait([hears], 0.0):
            return
        heed(hears.recv(256), folders, unproven)


def heed(message: bytes, folders: dict[int, str], unproven: list[int]) -> None:
    """What one connection's process says of itself, that it is `PROVEN`, or wants for another's, its end; programs run there,
    so it may be anything."""
    with suppress(ValueError, KeyError):
        number, folder, *said = message.decode().split(" ")
        pid = int(number)
        if Path(folders[pid]).name != folder:  # a number alone may be another's by now
            return
        if said == [PROVEN]:
            unproven.remove(pid)
        elif not said:
            end(pid, folders)


def end(pid: int, folders: dict[int, str]) -> None:
    """With what it started, in whichever group; its number is nobody else's until it is waited for. One that does not end, as
    when it hangs in the kernel, stays among `folders`: nobody waits for it."""
    folder = folders[pid]
    Tree(pid, mark(folder)).end(0.0)
    with suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            return
    del folders[pid]
    remove_tree(folder)


def end_full(folders: dict[int, str]) -> float:
    """Ends those that keep more files or run more threads than they may; when to look again."""
    began = time.monotonic()
    for pid, folder in list(folders.items()):
        tree = Tree(pid, mark(folder))
        if kept([folder], tree.refresh(), DISK) > DISK:
            most = f"kept more than {DISK / 2**30:.0f} GiB of files, or more than have room there"
        elif tree.threads() > threads.beyond(threads.MANY):
            most = f"ran more than {threads.beyond(threads.MANY):,} threads"
        else:
            continue
        say(f"a connection was ended: it {most}")
        end(pid, folders)
    ended = time.monotonic()
    return ended + max(LOOK, (ended - began) / SHARE)


def mark(folder: str) -> str:
    """Of all that is started in it."""
    return f"{os.environ.get(TREE_VARIABLE, '')}/{Path(folder).name}"


def begin(
    taken: socket.socket,
    key: Key,
    gpu: bool,
    base: str,
    folders: dict[int, str],
    says: socket.socket,
    *ours: socket.socket | IO[str],
) -> list[int]:
    """The process, alone; `says` takes what is heeded; `ours` are the listener's alone."""
    folder, parent = "", os.getpid()
    try:
        folder = tempfile.mkdtemp(prefix="connection-", dir=base)
        pid = os.fork()
    except OSError as error:
        say(f"a connection was not taken: {error}")
        if folder:
            remove_tree(folder)
        return []
    if pid:
        folders[pid] = folder
        return [pid]
    try:
        os.setsid()
        die_with_parent(parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for one in ours:
            one.close()
        folders.clear()  # a program that knew the others' could have them buried
        taken.settimeout(None)
        os.chdir(folder)
        os.environ[TREE_VARIABLE] = mark(folder)
        served(taken, key, gpu, Path(folder), says)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(0)


def served(taken: socket.socket, key: Key, gpu: bool, folder: Path, says: socket.socket) -> None:
    """One connection, until the other side closes it."""
    from workers.device.orders import VERBS, Device, greeting

    keep_alive(taken)
    connection = Connection(taken.detach())
    if not proven(connection, key.letters):
        return
    says.sendall(f"{os.getpid()} {folder.name} {PROVEN}".encode())
    device = Device(folder, lambda pid, name: says.sendall(f"{pid} {name}".encode()), gpu)
    nowhere = os.open(os.devnull, os.O_RDWR)
    device.confine(key.path)
    connection.send_bytes(json.dumps(greeting(folder, gpu)).encode())
    # Of a shell, perhaps: programs could read what is typed there. Until here errors are told there.
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    serve(connection, device, VERBS, lambda: device.silence)


def proven(connection: Connection, key: bytearray) -> bool:
    """Whether the other side has the key, and was shown that this one has it. This process has it no more then."""
    site, device = proofs(key)
    key[:] = bytes(len(key))
    signal.setitimer(signal.ITIMER_REAL, PROVES)
    try:
        deliver_challenge(connection, site)
        answer_challenge(connection, device)
    except (AuthenticationError, EOFError, OSError):
        return False
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return True


if __name__ == "__main__":
    sys.exit(main())
