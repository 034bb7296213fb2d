"""What a child does to itself before it becomes the program: the bootstrap between `spawn` and the real module.

It runs in a fresh interpreter and ends in exec, so nothing happens between fork and exec in a process with threads.
The policy is one JSON object; its keys are those that `spawn` writes.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from workers.sandbox import landlock, seccomp
from workers.sandbox.protection import Protection

LEVEL_VARIABLE = "TUNINGSITE_LANDLOCK"
FILTER_VARIABLE = "TUNINGSITE_FILTERED"
FAILED = 126

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_OOM_SCORE = 500  # when memory runs out, the kernel takes a child before the web process

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    # prctl is variadic: its arguments must be passed as longs, or the upper halves of the registers are undefined.
    longs = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    if _libc.prctl(ctypes.c_int(option), *longs) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {value}): {os.strerror(code)}")


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when the thread that started it ends; ends it now when `parent` is already gone."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _drop_capabilities() -> None:
    """Makes a confined root nobody special: CAP_PERFMON reads other processes' environments despite Landlock."""
    for capability in range(64):
        if _libc.prctl(ctypes.c_int(_PR_CAPBSET_DROP), *(ctypes.c_ulong(n) for n in (capability, 0, 0, 0))) != 0:
            break  # not root, or beyond the last one the kernel knows
    with suppress(OSError):
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if _libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset: the kernel would not take our capabilities")


def limit(kind: int, value: int | None, slack: int = 0) -> None:
    """One of `resource`'s for this process, as far as what it may have allows; None leaves it."""
    if value is None:
        return
    hard = resource.getrlimit(kind)[1]
    allowed = [value, value + slack] if hard == resource.RLIM_INFINITY else [min(value, hard), min(value + slack, hard)]
    resource.setrlimit(kind, (allowed[0], allowed[1]))


def _apply_limits(limits: Mapping[str, int | None]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit(resource.RLIMIT_FSIZE, limits["file_size"])
    limit(resource.RLIMIT_NOFILE, limits["open_files"])
    limit(resource.RLIMIT_NPROC, limits["processes"])
    # SIGXCPU at the limit can be caught; SIGKILL follows two seconds later and cannot.
    limit(resource.RLIMIT_CPU, limits["cpu_seconds"], slack=2)
    limit(resource.RLIMIT_AS, limits["address_space"])


def confine(policy: Mapping[str, Any]) -> Protection:
    """Applies the policy to this process for good; returns what of it the kernel has.

    Raises OSError when a limit cannot be set, or PermissionError when the kernel offers less than is required.
    """
    if policy["parent"] is not None:
        die_with_parent(policy["parent"])
    # What loses its parent becomes a child of this process, and is found as such when the tree is ended.
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with suppress(OSError):
        os.nice(policy["nice"])
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write(str(_OOM_SCORE))
    _apply_limits(policy["limits"])
    access = policy["access"]
    if access is None:
        return Protection()
    network = access["network"]
    level = landlock.restrict(network=network, **access["files"])
    _drop_capabilities()
    protection = Protection(level, seccomp.restrict(network=network, **access["calls"]))
    if lacking := protection.lacks(access["required"]):
        raise PermissionError(f"this work needs {lacking} (take a newer Linux, started with lsm=landlock)")
    return protection


def main(arguments: Sequence[str]) -> NoReturn:
    """Confines this process and becomes `arguments[1:]`; says on the status pipe how far it came."""
    policy = json.loads(arguments[0])
    status = policy["status"]
    os.set_inheritable(status, False)
    # Python ignores these two, exec would hand that on, and a compiler in a pipe would never end.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        protection = confine(policy)
        os.environ[LEVEL_VARIABLE] = str(protection.landlock)
        if protection.filtered:
            os.environ[FILTER_VARIABLE] = "1"
        os.write(status, f"{protection.landlock} {protection.filtered:d}\n".encode())
        os.execvp(arguments[1], list(arguments[1:]))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if isinstance(error, PermissionError) and error.errno and os.getuid() == 0:
            text += " (root is confined without its right to pass the folders of others: run this as their owner)"
        os.write(status, f"{text}\n".encode())
    os._exit(FAILED)
