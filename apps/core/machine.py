"""What this machine is, as far as can be seen without measuring anything."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workers.messages.machine import most_cores

PROCESSOR = Path("/proc/cpuinfo")
_TOLD = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features", "CPU part")


def fingerprint() -> dict[str, str]:
    """Of what a measured peak, and what TVM compiles for, depend on: processor, cores that may be used, TVM."""
    found = {"machine": platform.machine(), "cores": str(len(os.sched_getaffinity(0))), "most": f"{most_cores():g}"}
    with suppress(OSError):
        first = PROCESSOR.read_text().partition("\n\n")[0]
        lines = (line.partition(":") for line in first.splitlines())
        found |= {name.strip(): value.strip() for name, _, value in lines if name.strip() in _TOLD}
    with suppress(PackageNotFoundError):
        found["tvm"] = version("apache-tvm")
    return found
