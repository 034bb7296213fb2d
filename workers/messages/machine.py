"""What this machine is, as far as can be seen without measuring anything, and what it, or the control groups that we are in,
has to share out."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
THREADS = "THREADS"
"""Environment: the most cores that a network is tuned and timed on."""
PROCESSOR = Path("/proc/cpuinfo")
TARGET_RULE = "4"
"""Of `tvm_backend.hardware.cpu_target`: by another one the same processor may have another target."""
_TOLD = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")


def fingerprint() -> dict[str, str]:
    """Of what a measured peak, and what TVM compiles for, depend on: processor, cores that may be used, TVM."""
    found = {"machine": platform.machine(), "cores": str(len(os.sched_getaffinity(0))), "most": f"{most_cores():g}"}
    found["target"] = TARGET_RULE
    found |= {name: value for name, value in processor().items() if name in _TOLD}
    with suppress(PackageNotFoundError):
        found["tvm"] = version("apache-tvm")
    return found


def processor() -> dict[str, str]:
    """What the kernel tells of the first one; nothing where it tells nothing."""
    try:
        first = PROCESSOR.read_text().partition("\n\n")[0]
    except OSError:
        return {}
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}


def memory() -> int:
    """Bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    older = _said_by_first_version("memory", "memory.limit_in_bytes")
    return min((physical, *older, *(int(most) for (most,) in _said("memory.max") if most != "max")))


def most_cores() -> float:
    """By the groups' quotas, a started core whole, and by the environment; infinite without either. ValueError for an
    environment that names no number of cores."""
    text = os.environ.get(THREADS, "")
    if text and (not text.isdecimal() or not int(text)):
        raise ValueError(f"{THREADS}={text} must be a whole number of cores, at least 1")
    quotas = (math.ceil(int(quota) / int(period)) for quota, period in _said("cpu.max") if quota != "max")
    pairs = zip(
        _said_by_first_version("cpu", "cpu.cfs_quota_us"),
        _said_by_first_version("cpu", "cpu.cfs_period_us"),
        strict=False,
    )
    older = (math.ceil(quota / period) for quota, period in pairs if quota > 0)
    return max(1, min((int(text) if text else math.inf, *quotas, *older)))


def _said(name: str) -> Iterator[list[str]]:
    """The words of the file of this name of our control group and of all around it: each is a bound. Within a container
    that has a view of its own the root is our group; a service of systemd is beneath it."""
    for group in _groups(CGROUP, ""):
        with suppress(OSError):  # the root of all has none
            yield (group / name).read_text().split()


def _said_by_first_version(controller: str, name: str) -> Iterator[int]:
    """The number in the file of this name, where control groups have a hierarchy for each controller."""
    for group in _groups(CGROUP / controller, controller):
        with suppress(OSError, ValueError):
            yield int((group / name).read_text())


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Ours, and all around it up to the root; those of the second version are of no controller by name."""
    try:
        lines = [line.split(":", 2) for line in MEMBERSHIP.read_text().splitlines()]
    except OSError:
        lines = []
    ours = next((path for _, controllers, path in lines if controller in controllers.split(",")), "/")
    group = root if ".." in ours else root / ours.strip("/")
    yield group
    while group != root:
        group = group.parent
        yield group
