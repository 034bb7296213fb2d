"""Which processors kernels run on: one of each core's hardware threads, for two at work on a core share its vector units."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
PROCESSORS = Path("/sys/devices/system/cpu")


def usable_cores() -> int:
    """Whole cores that this process may run on: affinity and the control group's quota, at least one."""
    cores = len({_core(cpu) for cpu in os.sched_getaffinity(0)})
    try:
        quota, period = (CGROUP / "cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        pass
    return max(1, cores)


def apart(processors: Iterable[int]) -> list[int]:
    """The processors in an order in which a core has its second one only when every core has one."""
    first: list[int] = []
    later: list[int] = []
    seen: set[str] = set()
    for cpu in sorted(processors):
        core = _core(cpu)
        (later if core in seen else first).append(cpu)
        seen.add(core)
    return [*first, *later]


def _core(cpu: int) -> str:
    """The processors of its core, as the kernel names them; itself where that cannot be read."""
    try:
        return (PROCESSORS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
