"""What a child of each task may take and touch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workers.messages.device import SWITCHBOARD, Address
from workers.messages.folders import passing_folder, remove_tree
from workers.messages.machine import memory
from workers.sandbox import landlock, protection, threads
from workers.sandbox.files import DISK
from workers.sandbox.lock import MeasureLock
from workers.sandbox.spawn import Access, Limits
from workers.sandbox.threads import FEW, MANY
from workers.supervision.footprint import Bounds
from workers.supervision.ports import Deadlines, Ending, Journal, Speech
from workers.supervision.supervisor import supervise
from workers.supervision.switchboard import switchboard

GIB = 2**30
RESIDENT_SHARE = 0.8  # of the machine's memory; the rest is for the web process, the queue and the system
VERDICT, PROCESSOR = 20.0, 10.0  # s on the clock and of processor time for an inspection
BYTES_A_SECOND = 100e6  # that both grow by with the file
READER = Speech(events=1000, bytes=4 * 2**20)
"""Of a child that code of an uploaded file may speak for; ours says a dozen events, of some kilobytes."""
SCRATCH = "passing-"
CONVERSION = 120.0  # s from torch.export to ONNX; a large network takes some twenty
A_DAY = 86_400.0
"""Seconds for a compilation or for baselines, with what they wait for the measuring lock: of that only they themselves tell.
A large network on a slow machine, behind a benchmark of hours, is done by then; a child that only says that it lives goes."""


class Unconfined(PermissionError):
    """This machine cannot hold the order's child back; `reason` and `next_step` are for the user."""

    def __init__(self, reason: str, next_step: str) -> None:
        super().__init__(f"{reason}; {next_step}")
        self.reason = reason
        self.next_step = next_step


@dataclass(frozen=True)
class Terms:
    """Arguments of `supervise` for one order."""

    access: Access
    limits: Limits = field(default_factory=Limits)
    bounds: Bounds = field(default_factory=Bounds)
    deadlines: Deadlines = field(default_factory=Deadlines)
    speech: Speech = field(default_factory=Speech)
    lock: MeasureLock | None = None
    env: dict[str, str] = field(default_factory=dict)

    def supervise(self, order: Mapping[str, Any], journal: Journal, **deadlines: float | None) -> Ending:
        """`supervise` under these terms, in the order's `work_dir`; `deadlines` replaces single ones by name. Of a device
        elsewhere the child has connections, and neither a network nor the key."""
        with _scratch(Path(order["work_dir"])) as scratch, ExitStack() as held:
            handed: tuple[int, ...] = ()
            env = {**self.env, "TMPDIR": scratch}
            if device := order.get("device"):
                address = Address.from_json(device)
                handed = (held.enter_context(switchboard(address)),)
                env[SWITCHBOARD] = str(handed[0])
                order = {**order, "device": str(address)}
            return supervise(
                order,
                journal,
                limits=self.limits,
                access=self.access,
                bounds=self.bounds,
                env=env,
                pass_fds=handed,
                cwd=order["work_dir"],
                deadlines=replace(self.deadlines, **deadlines),  # type: ignore[arg-type]
                speech=self.speech,
                lock=self.lock,
            )


@contextmanager
def _scratch(work_dir: Path) -> Iterator[str]:
    """A directory for passing files, gone with the child however it ends. One that is killed leaves whole networks there;
    what it left when its supervisor was killed too goes first."""
    for left in work_dir.glob(f"{SCRATCH}*"):
        remove_tree(left)
    with passing_folder(SCRATCH, work_dir) as path:
        yield path


def terms_of(order: Mapping[str, Any]) -> Terms:
    """For an order of any task. Raises KeyError for an unknown task, OSError for a network that is gone or
    a lock in a shared directory, Unconfined for a conversion where the kernel cannot confine it."""
    return _TERMS[order["task"]](order)


def _inspect(order: Mapping[str, Any]) -> Terms:
    size = os.stat(order["network"]).st_size
    more = size / BYTES_A_SECOND
    return _reading(
        order,
        "network",
        # Address space, not memory: libraries and the file, which protobuf may hold several times over.
        Limits(address_space=12 * GIB + 6 * size, cpu_seconds=round(PROCESSOR + more), file_size=GIB),
        2 * GIB + 6 * size,
        GIB,
        VERDICT + more,
    )


def _convert(order: Mapping[str, Any]) -> Terms:
    """Code of the file may run here: it reads that file, writes its own directory, and there is nothing else to reach."""
    if lacking := protection.offered().lacks(landlock.SCOPED):
        raise Unconfined(
            f"a torch.export file may run code, and this machine cannot hold it back: that needs {lacking}",
            "export the network as .onnx, or convert it on Linux 6.12 or newer with lsm=landlock",
        )
    size = os.stat(order["source"]).st_size
    more = size / BYTES_A_SECOND
    return _reading(
        order,
        "source",
        Limits(
            address_space=24 * GIB + 12 * size,
            cpu_seconds=round(4 * (CONVERSION + more)),  # torch takes several cores
            file_size=GIB + 2 * size,
        ),
        4 * GIB + 8 * size,
        2 * GIB + 4 * size,  # the checked copy, and what it becomes
        CONVERSION + more,
        landlock.SCOPED,
    )


def _reading(
    order: Mapping[str, Any], file: str, limits: Limits, resident: int, disk: int, total: float, required: int = 0
) -> Terms:
    """Of who reads an uploaded file, the order's `file`, which may be anything: that, a directory, bytes `resident` and on
    `disk`, `total` seconds."""
    return Terms(
        limits=replace(limits, processes=threads.processes(FEW), open_files=256, nice=5),
        access=Access(
            read=(str(order[file]),),
            write=(str(order["work_dir"]),),
            network=False,
            required=required,
            pins=False,
            shares=False,
        ),
        bounds=Bounds(resident=min(int(RESIDENT_SHARE * memory()), resident), disk=disk, threads=threads.beyond(FEW)),
        deadlines=Deadlines(total=total),
        speech=READER,
        # It has no way to the lock; others take it around what is timed or compiled.
        lock=MeasureLock(),
    )


def _hardware(order: Mapping[str, Any]) -> Terms:
    return _compiling((), order["work_dir"])


def _tune(order: Mapping[str, Any]) -> Terms:
    known = (str(order["known"]),) if order.get("known") else ()
    return _compiling((_network(order), *known), order["work_dir"])


def _landscape(order: Mapping[str, Any]) -> Terms:
    return _compiling((_network(order),) if order.get("spec") else (), order["work_dir"])


def _compile(order: Mapping[str, Any]) -> Terms:
    return _within_a_day(_compiling((_network(order), str(order["log"])), order["work_dir"]))


def _baseline(order: Mapping[str, Any]) -> Terms:
    return _within_a_day(_compiling((_network(order),), order["work_dir"]))


def _within_a_day(terms: Terms) -> Terms:
    return replace(terms, deadlines=Deadlines(total=A_DAY))


def _network(order: Mapping[str, Any]) -> str:
    return str(json.loads(order["spec"])["network"])


def _compiling(read: tuple[str, ...], work_dir: str) -> Terms:
    """Without an end for the whole: all of these wait for the measuring lock, however long others hold it. They say that
    they wait, and one that hangs falls silent (workers.child.pulse). Of the lock they have its files, to open and no more:
    where they could write, one could fill the disk there, or put something else in its place."""
    return Terms(
        limits=Limits(file_size=DISK, processes=threads.processes(MANY)),
        access=Access(read=(*read, *MeasureLock().files()), write=(str(work_dir),), network=False),
        bounds=Bounds(
            resident=int(RESIDENT_SHARE * memory()),
            shared=True,  # measuring workers have what they were forked with
            disk=DISK,
            threads=threads.beyond(MANY),
        ),
        # Where there is no compiler, zig links, and keeps what it made; the home directory is closed to a child.
        # scikit-learn's joblib would warn that it finds no semaphores, which are in /dev/shm; nothing here needs them.
        env={"ZIG_GLOBAL_CACHE_DIR": str(Path(work_dir) / "zig"), "JOBLIB_MULTIPROCESSING": "0"},
    )


_TERMS = {
    "inspect": _inspect,
    "convert": _convert,
    "hardware": _hardware,
    "tune": _tune,
    "landscape": _landscape,
    "compile": _compile,
    "baseline": _baseline,
}
