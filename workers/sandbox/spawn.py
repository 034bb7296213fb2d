"""Starts a program with limits, in a session of its own, so that it cannot outlive whoever started it."""

from __future__ import annotations

import glob
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from workers.sandbox.confine import FILTER_VARIABLE, confine
from workers.sandbox.lock import PATH_VARIABLE
from workers.sandbox.protection import Protection
from workers.sandbox.tree import TREE_VARIABLE, Tree

ROOT = str(Path(__file__).resolve().parents[2])
LEFT = 10.0  # s for the kernel to end what has its SIGKILL, once: a job whose child hangs there is to be given back in time

_BOOTSTRAP = "import sys; sys.path.insert(0, sys.argv[1]); from workers.sandbox.confine import main; main(sys.argv[2:])"

INHERITED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "TZ", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
        "CUDA_VISIBLE_DEVICES", PATH_VARIABLE, "THREADS", "ZIG_GLOBAL_CACHE_DIR", FILTER_VARIABLE,
    }
)  # fmt: skip
LOCALE = {"LC_ALL": "C.UTF-8"}
"""Of every child: what compilers and linkers say is read by programs, which know it in one language."""
_SECRET = re.compile(r"DATABASE_URL|REDIS_URL|SECRET|TOKEN|PASSW|CREDENTIAL|API_?KEY|PRIVATE_?KEY", re.IGNORECASE)

_SYSTEM_READ = (
    "/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/opt", "/proc", "/sys",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/nsswitch.conf", "/etc/OpenCL",
    "/dev/urandom", "/dev/random",
)  # fmt: skip
_SYSTEM_WRITE = ("/dev/null", "/dev/full")  # neither /dev/shm nor /dev/zero: what is there is memory that nobody counts
_GPU_WRITE = (
    "/dev/zero", "/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/nvidia-uvm*", "/dev/nvidia-caps",
    "/dev/dxg",
    "/dev/nvmap", "/dev/nvhost-*", "/dev/nvgpu",
    "/proc/self/task",
)  # fmt: skip
"""Of cards, of those that Windows lends (WSL2), and of Jetson's boards. The last since CUDA names its threads there, and does
not start without. It is of the process that is confined alone, which may so take back that the kernel ends it first when memory
runs out."""


class SpawnError(RuntimeError):
    """The program could not be started; the message carries the reason the bootstrap gave."""


@dataclass(frozen=True)
class Limits:
    """What one process may take; None is no limit. Core dumps are always off, new privileges never given.

    `address_space`, `file_size` in bytes (no address space limit where CUDA is used: it reserves terabytes);
    `cpu_seconds` a process, not the tree; `processes` counts all of the user's, as the kernel does, and not for root.
    """

    address_space: int | None = None
    cpu_seconds: int | None = None
    file_size: int | None = None
    processes: int | None = None
    open_files: int | None = 4096
    nice: int = 0


@dataclass(frozen=True)
class Access:
    """Which files a process may touch, where Landlock is there; interpreter, system libraries and workers/ are added.

    Paths count with all beneath them. A confined process that takes the measuring lock needs `MeasureLock.files` among
    `read`. TMPDIR becomes the first of `write` unless the environment names another. `network` True leaves it TCP and
    UDP; sockets of other families are refused where system calls can be filtered. `required`: the least Landlock version
    without which, or without that filter, the process is not started; 0 requires neither. `hidden` stays closed where it
    lies beneath what is added. `pins` False: it may not say on which processors others run. `shares` False: it gets
    no memory that is shared and no file's, of which more stays than any process seems to hold. `gpu` True: it may use CUDA,
    on a local socket of packets that the driver waits on; in what it starts CUDA does not start.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = True
    gpu: bool = False
    required: int = 0
    hidden: tuple[str, ...] = ()
    pins: bool = True
    shares: bool = True


def scrubbed(additions: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: allowed names of ours, `LOCALE` and the additions. Raises ValueError for a secret's name."""
    kept = {name: value for name, value in os.environ.items() if name in INHERITED}
    for name in additions or {}:
        if _SECRET.search(name):
            raise ValueError(
                f"environment variable {name} looks like a secret: children get none, pass what they need by value"
            )
    if kept.get(PATH_VARIABLE):  # children work elsewhere, where a relative one would be another
        kept[PATH_VARIABLE] = os.path.abspath(kept[PATH_VARIABLE])
    return {**kept, **LOCALE, **(additions or {})}


def _around(path: str, hole: str) -> list[str]:
    """The path, or, where the hole lies in it, all beneath it but what is in the hole."""
    real = os.path.realpath(path)
    if os.path.commonpath([real, hole]) != real:
        return [path]
    if real == hole:
        return []
    try:
        # A link would open what it names, which may be in the hole; what it names here has an entry of its own.
        found = sorted(entry.path for entry in os.scandir(real) if not entry.is_symlink())
    except OSError:
        return []
    return [open_ for entry in found for open_ in _around(entry, hole)]


def _access_policy(access: Access, env: Mapping[str, str]) -> dict[str, Any]:
    paths = [os.path.abspath(path) for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    # The project's root also holds the site's key and database: its names may be listed, only the code beneath read.
    readable = [path for path in paths if path != ROOT and not ROOT.startswith(path + os.sep)]
    system = [sys.prefix, sys.base_prefix, *_SYSTEM_READ]
    # The project may lie in /opt, its data too, or beneath what Python finds modules in.
    data = os.path.realpath(os.environ.get("DATA_DIR") or ROOT)
    hidden = [data, *map(os.path.realpath, access.hidden)]
    for hole in (ROOT, *hidden):
        system = [path for one in system for path in _around(one, hole)]
    for hole in hidden:
        readable = [path for one in readable for path in _around(one, hole)]
    writing = [*access.write, *_SYSTEM_WRITE]
    if access.gpu:
        writing += [path for pattern in _GPU_WRITE for path in glob.glob(pattern)]
    return {
        "files": {
            "listing": [ROOT, *paths],
            "reading": [*access.read, *readable, f"{ROOT}/workers", *system],
            "writing": writing,
        },
        "calls": {"pins": access.pins, "gpu": access.gpu, "shares": access.shares},
        "network": access.network,
        "required": access.required,
    }


def _policy(parent: int | None, limits: Limits, access: Access | None, env: Mapping[str, str]) -> dict[str, Any]:
    """As `confine` takes it."""
    bounds = asdict(limits)
    return {
        "parent": parent,
        "nice": bounds.pop("nice"),
        "limits": bounds,
        "access": _access_policy(access, env) if access is not None else None,
    }


def confine_here(limits: Limits, access: Access) -> Protection:
    """What `spawn` does to what it starts, done to the calling process, which must have one thread: for good, and as far as the
    kernel can. Raises OSError as `confine` does."""
    protection = confine(_policy(None, limits, access, os.environ))
    if protection.filtered:
        os.environ[FILTER_VARIABLE] = "1"
    return protection


class Process:
    """A started program. Ends with everything it started: `end`, or leaving the `with` block."""

    def __init__(self, popen: subprocess.Popen[bytes], tree: Tree, status: int) -> None:
        self.popen = popen
        self.tree = tree
        self._status: int | None = status
        self._protection = Protection()
        self._left = False

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def stdin(self) -> IO[bytes] | None:
        return self.popen.stdin

    @property
    def stdout(self) -> IO[bytes] | None:
        return self.popen.stdout

    def protection(self) -> Protection:
        """What holds it back. Waits for the bootstrap; raises SpawnError when that failed."""
        if self._status is not None:
            with os.fdopen(self._status, "rb") as status:
                self._status = None
                said = status.read().decode(errors="replace").splitlines()
            words = said[-1].split() if said else []
            if len(words) != 2 or not all(word.isdigit() for word in words):
                reason = said[-1] if said else "it was ended before it began"
                raise SpawnError(f"cannot start {self.popen.args!r}: {reason}")
            self._protection = Protection(int(words[0]), words[1] == "1")
        return self._protection

    def exited(self) -> bool:
        """Whether the program is over; does not reap it, so its group's number stays ours until `end`."""
        if self.popen.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self, grace: float = 2.0) -> int:
        """SIGTERM, `grace` seconds, SIGKILL, for it and all it started; returns the exit status (negative: signal). One
        that the kernel does not end, as on a disk that answers no more, is left: it has its signal."""
        code = -signal.SIGKILL if self._left else self._ended(grace)
        for stream in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if stream is not None:
                stream.close()
        if self._status is not None:
            os.close(self._status)
            self._status = None
        return code

    def _ended(self, grace: float) -> int:
        self.tree.end(grace)
        try:
            return self.popen.wait(LEFT)
        except subprocess.TimeoutExpired:
            self._left = True
            return -signal.SIGKILL

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(0.0)


def spawn(
    argv: Sequence[str],
    *,
    limits: Limits | None = None,
    access: Access | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdin: int | IO[Any] | None = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    pass_fds: Sequence[int] = (),
    dies_with_parent: bool = True,
) -> Process:
    """Starts argv in a session of its own under `limits` and, where the kernel can, `access`; never forks Python code.

    A process whose system calls are filtered cannot make sessions: what it spawns gets a group of its own in that one.

    `env` is added to the scrubbed environment. The kernel sends the parent-death signal when the *thread* that called
    spawn ends: call it from the main thread or from one that outlives the child. Pipes are unbuffered. Raises
    ValueError for a secret in `env`, OSError when the interpreter cannot start; a program that cannot start shows in
    `Process.protection`.
    """
    token = f"{os.environ.get(TREE_VARIABLE, '')}/{secrets.token_hex(8)}"
    additions = dict(env or {})
    if access is not None and access.write:
        additions.setdefault("TMPDIR", access.write[0])
    environment = scrubbed(additions)
    paths = [ROOT, *(path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", ROOT))]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["PYTHONSAFEPATH"] = "1"  # the directory it works in holds no modules
    environment[TREE_VARIABLE] = token
    policy = _policy(os.getpid() if dies_with_parent else None, limits or Limits(), access, environment)
    filtered = os.environ.get(FILTER_VARIABLE) == "1"
    reading, writing = os.pipe()
    try:
        popen = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOTSTRAP, ROOT, json.dumps(policy | {"status": writing}), *argv],
            env=environment,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(*pass_fds, writing),
            start_new_session=not filtered,
            process_group=0 if filtered else None,
            bufsize=0,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    return Process(popen, Tree(popen.pid, token), reading)
