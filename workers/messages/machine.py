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
_TOLD = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")


def fingerprint() -> dict[str, str]:
    """Of what a measured peak, and what TVM compiles for, depend on: processor, cores that may be used, TVM."""
    found = {"machine": platform.machine(), "cores": str(len(os.sched_getaffinity(0))), "most": f"{most_cores():g}"}
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
    return min((physical, *(int(most) for (most,) in _said("memory.max") if most != "max")))


def most_cores() -> float:
    """By the groups' quotas, a started core whole, and by the environment; infinite without either. ValueError for an
    environment that names no number of cores."""
    text = os.environ.get(THREADS, "")
    if text and (not text.isdecimal() or not int(text)):
        raise ValueError(f"{THREADS}={text} must be a whole number of cores, at least 1")
    quotas = (math.ceil(int(quota) / int(period)) for quota, period in _said("cpu.max") if quota != "max")
    return max(1, min((int(text) if text else math.inf, *quotas)))


def _said(name: str) -> Iterator[list[str]]:
    """The words of the file of this name of our control group and of all around it: each is a bound. Within a container
    that has a view of its own the root is our group; a service of systemd is beneath it."""
    for group in _groups():
        try:
            yield (group / name).read_text().split()
        except OSError:  # the root of all has none
            continue


def _groups() -> Iterator[Path]:
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        lines = []
    ours = next((line[3:] for line in lines if line.startswith("0::")), "/")
    group = CGROUP if ".." in ours else CGROUP / ours.strip("/")
    yield group
    while group != CGROUP:
        group = group.parent
        yield group
