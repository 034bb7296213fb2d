"""This machine's hardware and peak, measured once and kept beside the user's caches."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from workers.headless.ask import ask
from workers.headless.errors import UserMistake
from workers.headless.terminal import visible
from workers.messages.cores import usable_cores
from workers.messages.device import Address
from workers.messages.machine import fingerprint, memory, most_cores
from workers.messages.whole import write_whole

FIELDS = ("hardware", "peak", "versions")
SIGN = "fingerprint"
"""Kept beside them: what can be told again without loading TVM, which every command would wait for."""


def cache() -> Path:
    """Where measured machines are kept; RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tuningsite" / "machine.json"


def device_machine(device: Address) -> dict[str, Any]:
    """The same of a device elsewhere, measured anew."""
    _check_cores()
    found = ask({"task": "hardware", "peak": True, "device": device.to_json()})
    return {name: found[name] for name in FIELDS}


def this_machine(measure_again: bool = False) -> dict[str, Any]:
    """{hardware, peak, versions}; measures the peak when the machine is not the one that was kept."""
    _check_cores()
    if not measure_again and (kept := _kept()) is not None:
        return kept
    found = ask({"task": "hardware", "peak": True})
    result = {name: found[name] for name in FIELDS}
    _keep({**result, SIGN: fingerprint()})
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


def _check_cores() -> None:
    try:
        most_cores()
    except ValueError as error:
        raise UserMistake(str(error)) from None


def _kept() -> dict[str, Any] | None:
    """None where it is not what `this_machine` keeps, or of another machine."""
    try:
        found = json.loads(cache().read_text())
        kept = {name: dict(found[name]) for name in FIELDS}
        seen = {"cores": usable_cores(), "memory": memory()}
        same = found[SIGN] == fingerprint() and seen.items() <= kept["hardware"].items()
        return kept if same and all(version(name) == known for name, known in kept["versions"].items()) else None
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, PackageNotFoundError):
        return None


def _keep(machine: Mapping[str, Any]) -> None:
    """Where that cannot be, every command takes a quarter of a minute longer, and says so."""
    try:
        path = cache()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(machine))
    except (OSError, RuntimeError) as error:
        told = (
            f"what was measured of this machine cannot be kept ({error}): name a directory of yours in XDG_CACHE_HOME"
        )
        sys.stderr.write(f"{visible(told)}\n")
