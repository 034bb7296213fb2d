"""What this machine needs to tune, looked at piece by piece, each with what to do about it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import DatabaseError, connection

from apps.core import protection
from apps.operations import embedded, listening, lock, site
from apps.operations.site_command import MAKES_NO_TABLES, UNREACHED
from workers.messages.cores import usable_cores
from workers.messages.linker import ADVICE, CUDA, PIP, ZIG, find_linker
from workers.messages.machine import memory

Level = Literal["ok", "warn", "missing"]

OLDEST = (3, 11)
INSTALL = f"{PIP} -r requirements.txt"

_PIN = re.compile(r"^([A-Za-z0-9_.\-]+)(?:\[[^\]]*\])?==([^\s;#]+)")
_LEAST_DISK, _LEAST_MEMORY = 1 << 30, 7 << 29
"""Bytes; of a machine's 4 GiB its firmware and kernel keep some."""
_LOADS = "import ctypes; ctypes.CDLL({!r})"
_OF_GPUS = (
    ("no compiler for it", "from cuda.bindings import nvrtc; nvrtc.nvrtcVersion()", CUDA),
    ("no driver of NVIDIA's (libcuda.so.1)", _LOADS.format("libcuda.so.1"), "install it"),
    (
        "no runtime of CUDA 13 (libcudart.so.13)",
        _LOADS.format("libcudart.so.13"),
        "install CUDA's toolkit, or the wheel nvidia-cuda-runtime and name its folder in LD_LIBRARY_PATH",
    ),
)
"""What lacks, where a process of its own cannot load it, and what to do."""
_TVM = "import sys; sys.modules['torch'] = None; import tvm; print(tvm.__version__)"
"""Without torch, which TVM takes along where it finds it: as the workers load it, and half as long."""


@dataclass(frozen=True)
class Finding:
    """`step` is what the user can do, empty when all is well. A `missing` thing keeps the site from tuning."""

    level: Level
    name: str
    text: str
    step: str = ""

    def line(self) -> str:
        return f"{self.level:8}{self.name}: {self.text}" + (f" -> {self.step}" if self.step else "")


def python() -> Finding:
    text = platform.python_version()
    if tuple(map(int, platform.python_version_tuple()[:2])) < OLDEST:
        return Finding("missing", "Python", text, "install Python 3.11 or newer")
    return Finding("ok", "Python", text)


def packages() -> Iterator[Finding]:
    pins = dict(_pins(Path(settings.BASE_DIR) / "requirements.txt"))
    if not pins:
        yield Finding("warn", "packages", "there is no requirements.txt to compare with")
        return
    absent, other = [], []
    for name, wanted in pins.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            absent.append(f"{name} {wanted}")
            continue
        if found.partition("+")[0] != wanted:  # torch has its build behind the plus
            other.append(f"{name} {found} instead of {wanted}")
    if absent:
        yield Finding("missing", "packages", ", ".join(absent), INSTALL)
    if other:
        yield Finding("warn", "packages", ", ".join(other), INSTALL)
    if not absent and not other:
        yield Finding("ok", "packages", f"{len(pins)}, all as pinned")


def _pins(path: Path) -> Iterator[tuple[str, str]]:
    if path.exists():
        for line in path.read_text().splitlines():
            if match := _PIN.match(line.strip()):
                yield match[1], match[2]


def tvm() -> Finding:
    """In a process of its own: the web side never loads it."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _TVM], capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired:
        return Finding("missing", "TVM", "did not load within two minutes", "look for what else keeps the machine busy")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return Finding("missing", "TVM", f"cannot be loaded: {last[:300]}", INSTALL)
    return Finding("ok", "TVM", f"{done.stdout.strip().splitlines()[-1]} loads")


def linker() -> Finding:
    found = find_linker()
    if found is None:
        return Finding("missing", "linker", "none; no run begins without one", ADVICE)
    return Finding(
        "ok", "linker", found if found != ZIG else f"the {ZIG} wheel; the first artifact takes some 20 s longer"
    )


def database() -> Finding:
    try:
        connection.ensure_connection()
        makes_tables = _makes_tables()
    except DatabaseError as error:
        return Finding("missing", "database", str(error).partition("\n")[0], UNREACHED)
    finally:
        connection.close()
    if connection.vendor == "postgresql":
        if not makes_tables:
            return Finding(
                "missing", "database", "PostgreSQL answers, and its user may make no tables", MAKES_NO_TABLES
            )
        return Finding("ok", "database", "PostgreSQL answers")
    text = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < (3, 51, 3):
        return Finding(
            "ok",
            "database",
            f"{text}, without a write-ahead log (it is faulty before 3.51.3; this is slower, not unsafe)",
        )
    return Finding("ok", "database", f"{text}, with a write-ahead log")


def _makes_tables() -> bool:
    """Who does not own a database of PostgreSQL may, from version 15 on, not, unless its owner lets it."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_schema_privilege(current_schema(), 'CREATE')")
        return bool(cursor.fetchone()[0])


def queue_server() -> Finding:
    if not site.own_server():
        if silence := _silence():
            step = "start it, or unset REDIS_URL to use the server that comes with the site"
            return Finding("missing", "queue", silence, step)
        return Finding("ok", "queue", "the server in REDIS_URL answers")
    try:
        path = embedded.binary()
    except embedded.NoServer as error:
        return Finding("missing", "queue", str(error))
    try:
        done = subprocess.run([str(path), "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):  # no right to, no loader of its kind, no answer
        return Finding("missing", "queue", f"{path} does not run here", "set REDIS_URL to a server of your own")
    found = re.search(r"v=(\S+)", done.stdout)
    text = f"embedded Valkey {found[1] if found else ''}".rstrip()
    if lock.noted(Path(settings.DATA_DIR)) and (silence := _silence()):
        step = "set REDIS_URL here too if the site has it; else end the site and start it again"
        return Finding("missing", "queue", f"{text}; {silence}", step)
    return Finding("ok", "queue", text)


def _silence() -> str:
    """Why the queue's server does not answer; "" where it does."""
    try:
        embedded.wait_until_up(settings.REDIS_URL, 2.0)
    except embedded.NoServer as error:
        return str(error)
    return ""


def data_directory() -> Iterator[Finding]:
    path = Path(settings.DATA_DIR)
    probe = path / f".doctor-{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        yield Finding(
            "missing", "data", f"{path} cannot be written: {error.strerror}", "set DATA_DIR to a directory of yours"
        )
        return
    free = shutil.disk_usage(path).free
    text = f"{path}, {free / 2**30:.1f} GiB free{_emptied()}"
    if free < _LEAST_DISK:
        yield Finding("warn", "data", text, "make room: networks, artifacts and work files need a gigabyte or more")
    else:
        yield Finding("ok", "data", text)


def _emptied() -> str:
    """What SQLite keeps for itself of rows that were deleted, where that is worth a word."""
    if connection.vendor != "sqlite" or not Path(connection.settings_dict["NAME"]).exists():
        return ""
    try:
        with connection.cursor() as cursor:
            free, size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    except DatabaseError:  # which `database` says
        return ""
    finally:
        connection.close()
    return (
        f"; the database would give back {free * size / 2**30:.1f} GiB to VACUUM" if free * size >= _LEAST_DISK else ""
    )


def machine() -> Iterator[Finding]:
    cores = usable_cores()
    yield Finding(
        "ok" if cores > 1 else "warn", "cores", str(cores), "" if cores > 1 else "tuning with one core is slow"
    )
    held = memory()
    text = f"{held / 2**30:.1f} GiB"
    enough = held >= _LEAST_MEMORY
    yield Finding(
        "ok" if enough else "warn", "memory", text, "" if enough else "large networks will not fit; 4 GiB is a start"
    )


def graphics(devices: Path = Path("/dev"), lent: Path = Path("/usr/lib/wsl/lib/libcuda.so.1")) -> Iterator[Finding]:
    """Nothing where there is no NVIDIA GPU: no card, no Jetson's, and none that Windows lends with the driver `lent`."""
    own = any(any(devices.glob(name)) for name in ("nvidia[0-9]*", "nvmap"))
    if not own and not ((devices / "dxg").exists() and lent.exists()):
        return
    lacking = [(what, step) for what, code, step in _OF_GPUS if not _runs(code)]
    for what, step in lacking:
        yield Finding("warn", "GPU", f"NVIDIA's, and {what}", f"to tune for it: {step}")
    if not lacking:
        yield Finding("ok", "GPU", "NVIDIA's; 'python -m workers.device --gpu' lets networks be tuned for it")


def _runs(code: str) -> bool:
    """In a process of its own: a library that does not fit may end it."""
    try:
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def confinement() -> Iterator[Finding]:
    offered = protection.offered()
    trust = "let only people you trust upload until then"
    if offered is None:
        yield Finding("warn", "confinement", "this machine did not say what it offers", f"look again later; {trust}")
        return
    files = f"level {offered.landlock}: a model file can reach no other file"
    if offered.scoped:
        yield Finding("ok", "Landlock", f"{files} and signal no other process")
    elif offered.landlock:
        text = f"{files}, but can end other processes of this user"
        yield Finding("warn", "Landlock", text, f"Linux 6.12 or newer; {trust}")
    else:
        text = "not there: children have limits, but can read files and end processes of this user"
        step = f"Linux 6.12 or newer, or 5.13 for files alone, with landlock among its lsm; {trust}"
        yield Finding("warn", "Landlock", text, step)
    if offered.filtered:
        yield Finding("ok", "seccomp", "a model file can open no socket and look into no process")
    else:
        text = f"not there, or not for {platform.machine()}: children can reach UNIX sockets of this user"
        yield Finding("warn", "seccomp", text, f"a 64-bit x86 or ARM Linux built with CONFIG_SECCOMP_FILTER; {trust}")


def torch_export() -> Iterator[Finding]:
    """Nothing where the site takes no such files."""
    offered = protection.offered()
    if settings.ALLOW_TORCH_EXPORT and offered is not None and not (offered.scoped and offered.filtered):
        text = "ALLOW_TORCH_EXPORT=1, and every .pt2 is refused: nothing here would hold back the code in it"
        step = "Linux 6.12 or newer with landlock among its lsm and seccomp, or leave it out"
        yield Finding("warn", "torch.export", text, step)


def address() -> Finding:
    if running := lock.noted(Path(settings.DATA_DIR)):
        return Finding("ok", "address", f"the site runs at {running}")
    try:
        wanted = listening.configured()
        listening.admit(wanted, _has_passwords)
        held, found = listening.listen(wanted)
    except listening.Refused as error:
        return Finding("missing", "address", str(error))
    held.close()
    if found.port != wanted.port:
        return Finding("warn", "address", f"port {wanted.port} is taken; `up` would listen on {found.port}")
    return Finding("ok", "address", f"{found.host}:{found.port} is free")


def _has_passwords() -> bool:
    """No database, or one that `up` never filled, has no accounts."""
    try:
        return listening.has_passwords()
    except DatabaseError:
        return False


CHECKS: tuple[Callable[[], Finding | Iterator[Finding]], ...] = (
    python, packages, tvm, linker, database, queue_server, data_directory, machine, graphics, confinement, torch_export,
    address,
)  # fmt: skip


def examine() -> Iterator[Finding]:
    """Every finding, as it is made."""
    for check in CHECKS:
        found = check()
        if isinstance(found, Finding):
            yield found
        else:
            yield from found
