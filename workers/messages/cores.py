"""Which processors kernels run on: one of each core's hardware threads, for two at work on a core share its vector units."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from workers.messages.machine import most_cores

PROCESSORS = Path("/sys/devices/system/cpu")


def usable_cores() -> int:
    """Whole cores that this process may run on: affinity, control groups and environment, at least one."""
    return int(min(len({_core(cpu) for cpu in os.sched_getaffinity(0)}), most_cores()))


def threads_here(threads: int) -> int:
    """As many of those a target is tuned for as there are cores: a device's may be more."""
    return min(threads, usable_cores())


def apart(processors: Iterable[int]) -> list[int]:
    """The processors in an order in which a core has its second one only when every core has one, and slow cores come last."""
    first: list[int] = []
    later: list[int] = []
    seen: set[str] = set()
    for cpu in sorted(processors, key=lambda cpu: (-_speed(cpu), cpu)):
        core = _core(cpu)
        (later if core in seen else first).append(cpu)
        seen.add(core)
    return [*first, *later]


def _speed(cpu: int) -> int:
    """Of its core beside others of this machine, where some are larger; 0 where the kernel does not say."""
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        with suppress(OSError, ValueError):
            return int((PROCESSORS / f"cpu{cpu}" / name).read_text())
    return 0


def _core(cpu: int) -> str:
    """The processors of its core, as the kernel names them; itself where that cannot be read."""
    try:
        return (PROCESSORS / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)
