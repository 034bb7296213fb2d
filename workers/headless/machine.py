"""This machine's hardware and peak, measured once and kept beside the user's caches."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workers.headless.ask import ask
from workers.headless.whole import write_whole
from workers.messages.device import Address

FIELDS = ("hardware", "peak", "versions")


def cache() -> Path:
    """Where measured machines are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tuningsite" / "machine.json"


def device_machine(device: Address) -> dict[str, Any]:
    """The same of a device elsewhere, measured anew."""
    found = ask({"task": "hardware", "peak": True, "device": device.to_json()})
    return {name: found[name] for name in FIELDS}


def this_machine(measure_again: bool = False) -> dict[str, Any]:
    """{hardware, peak, versions}; measures the peak when the machine is not the one that was kept."""
    path = cache()
    kept = _kept(path)
    if kept is not None and not measure_again:
        now = ask({"task": "hardware", "peak": False})
        if all(now[name] == kept[name] for name in ("hardware", "versions")):
            return kept
    found = ask({"task": "hardware", "peak": True})
    result = {name: found[name] for name in FIELDS}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(result))
    return result


def spec_fields(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a RunSpec that are the machine's, all cores of it; `machine` as `this_machine` gives it."""
    hardware, peak = machine["hardware"], machine["peak"]
    return {
        "target": hardware["target"],
        "threads": hardware["cores"],
        "peak_flops": peak["flops"],
        "bandwidth": peak["bandwidth"],
    }


def _kept(path: Path) -> dict[str, Any] | None:
    """None too where it is not what `this_machine` keeps."""
    try:
        found = json.loads(path.read_text())
        return {name: dict(found[name]) for name in FIELDS}
    except (OSError, ValueError, TypeError, KeyError):
        return None
