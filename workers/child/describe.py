"""Short tasks: what a network is, and what this machine is and can do."""

from __future__ import annotations

from typing import Any

from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader
from workers.networks.inspect import inspect


def inspect_network(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {network}. Tells a result {inspection}, or fails with the reason."""
    pulse.tell("phase", name="inspecting", text="reading the network")
    pulse.tell("result", task="inspect", inspection=inspect(order["network"]).to_json())


def describe_hardware(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {peak: bool}. Tells a result {hardware, peak | null}; the peak is measured alone on the machine."""
    from workers.sandbox.lock import MeasureLock
    from workers.tvm_backend import runtime

    pulse.tell("phase", name="detecting", text="looking at this machine")
    runtime.load()
    from workers.tvm_backend.hardware import detect
    from workers.tvm_backend.peak import measure_peak

    hardware = detect()
    peak = None
    if order.get("peak", True):
        with MeasureLock().exclusive():
            found = measure_peak(hardware.target, hardware.cores)
        peak = {"flops": found.flops, "bandwidth": found.bandwidth}
    pulse.tell("result", task="hardware", hardware=hardware.to_json(), peak=peak, versions=runtime.versions())
