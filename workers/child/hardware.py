"""What this machine or a device is and can do; of a device's word only what a machine could say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.messages.channel import ControlReader

PATIENCE = 600.0
"""s without an event until a measurement of the machine counts as hung; it takes a quarter of a minute."""

LARGEST, LONGEST, MOST_CORES = 1 << 16, 200, 4096
"""Bytes of what a device says of itself, letters of a word of it, and cores."""
TRIPLE = re.compile(r"[a-z0-9_]+-linux-gnu")
ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[af]?")


def describe_hardware(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {peak: bool, device: its address | absent}. Tells a result {hardware, peak | null, versions}, of this
    machine or of the device; the peak is measured alone on it."""
    from workers.tvm_backend import runtime

    pulse.patience = PATIENCE
    if order.get("device"):
        pulse.tell("phase", name="detecting", text="calling the device")
        pulse.tell("result", task="hardware", **_at_once(order.get("peak", True)))
        return
    pulse.tell("phase", name="detecting", text="looking at this machine")
    runtime.load()
    from workers.tvm_backend.hardware import detect
    from workers.tvm_backend.peak import peak_alone

    hardware = detect()
    peak = None
    if order.get("peak", True):
        peak = peak_alone(hardware.target, hardware.cores, TurnLock(pulse).exclusive())
    pulse.tell("result", task="hardware", hardware=hardware.to_json(), peak=peak, versions=runtime.versions())


def _at_once(peak: bool) -> dict[str, Any]:
    """`asked`; that the device does not answer is an answer to who asked for it now."""
    from workers.tvm_backend.remote.line import DeviceGone, DeviceRefused

    try:
        return asked(peak)
    except DeviceGone as gone:
        raise DeviceRefused(str(gone), gone.next_step) from None


def asked(peak: bool) -> dict[str, Any]:
    """What the device says of itself: {hardware, peak | null, versions}; DeviceRefused where no machine would say so."""
    from workers.tvm_backend.remote.line import DeviceRefused, call

    line = call()
    try:
        found = line.ask("hardware", PATIENCE, peak=peak)
    finally:
        line.close()
    if not _plausible(found):
        raise DeviceRefused("it says of its hardware what no machine would", "look at what listens there")
    return found


def _plausible_gpu(target: Mapping[str, Any]) -> bool:
    """Its architecture goes into a compiler's options."""
    most = [target[f"max_{what}_per_block"] for what in ("threads", "shared_memory")]
    of_gpu = target["kind"] == "cuda" and ARCHITECTURE.fullmatch(target["arch"]) is not None
    return of_gpu and all(type(value) is int and 0 < value < LARGEST**2 for value in most)


def _plausible(told: Any) -> bool:
    """It goes into pages and archives, and its triple into what people are told to install."""
    try:
        hardware, peak, versions = told["hardware"], told["peak"], told["versions"]
        target = hardware["target"]
        # A GPU's names those of its processor too.
        parts = [{name: value for name, value in target.items() if name != "host"}, target.get("host", {})]
        words = (
            *(hardware[name] for name in ("name", "system", "machine")), *hardware["flags"], *versions, *versions.values(),
            *(value for part in parts for value in part.values() if not isinstance(value, int | list)),
            *(word for part in parts for word in part.get("mattr", [])),
        )  # fmt: skip
        return (
            len(json.dumps(told)) <= LARGEST
            and all(isinstance(word, str) and len(word) <= LONGEST and word.isprintable() for word in words)
            and all(isinstance(hardware[name], int) for name in ("cores", "memory"))
            and 1 <= hardware["cores"] <= MOST_CORES
            and (peak is None or all(0 < float(peak[name]) < math.inf for name in ("flops", "bandwidth")))
            and TRIPLE.fullmatch(target.get("host", target)["mtriple"]) is not None
            and (target["kind"] == "llvm" or _plausible_gpu(target))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
