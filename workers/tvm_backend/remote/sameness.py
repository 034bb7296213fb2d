"""Whether a device is the one that was tuned for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workers.tvm_backend.remote.line import DeviceRefused


def check_same(hardware: Mapping[str, Any], target: Mapping[str, Any], threads: int, name: str) -> None:
    """Raises DeviceRefused where a device of that `hardware`, as it says of itself, is another: two cards of one architecture
    may have one target, and as many multiprocessors. `name` is of what was tuned for, "" where that is not known."""
    # Without a name of its own a board is as it was called before boards had one.
    names = ("", hardware.get("name"), f"{hardware.get('machine')} ({target.get('mcpu')})")
    others = {
        "its target is another": hardware.get("target") != target,
        f"it has {hardware.get('cores')} cores or multiprocessors, not {threads}": hardware.get("cores") != threads,
        f"it is {hardware.get('name')}, not {name}": name not in names,
    }
    if found := [reason for reason, holds in others.items() if holds]:
        raise DeviceRefused(
            f"this is another machine than the one that was measured: {found[-1]}",
            "see that the device is as it was, or have it tested again and start another run",
        )
