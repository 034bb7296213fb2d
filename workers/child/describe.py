"""Short tasks: what a network is, and what this machine is and can do."""

from __future__ import annotations

import os
from typing import Any

from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.messages.channel import ControlReader
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect
from workers.networks.precision import INTEGER_OPERATORS

PATIENCE = 600.0
"""s without an event until a measurement of the machine counts as hung; it takes a quarter of a minute."""


def inspect_network(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {network}. Tells a result {inspection}, or fails with the reason."""
    pulse.tell("phase", name="inspecting", text="reading the network")
    inspection = inspect(order["network"])
    # Loaded only for a file that stood the check.
    from workers.tvm_backend import runtime

    runtime.load()
    from workers.tvm_backend.importer import unsupported

    if missing := unsupported(set(inspection.operators) - INTEGER_OPERATORS):
        raise NetworkError(
            ", ".join(missing), "TVM cannot import these operators", "export the network with others, or an older opset"
        )
    pulse.tell("result", task="inspect", inspection=inspection.to_json())


def describe_hardware(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {peak: bool}. Tells a result {hardware, peak | null}; the peak is measured alone on the machine."""
    from workers.tvm_backend import runtime

    pulse.patience = PATIENCE
    pulse.tell("phase", name="detecting", text="looking at this machine")
    runtime.load()
    from workers.tvm_backend.hardware import detect
    from workers.tvm_backend.peak import measure_peak

    hardware = detect()
    peak = None
    if order.get("peak", True):
        # Read when the first kernel makes TVM's thread pool; without it the ceiling would be that of half the cores.
        os.environ.update(runtime.environment(hardware.cores))
        cores = runtime.spread_threads()
        with TurnLock(pulse).exclusive(), runtime.on_core(cores):
            found = measure_peak(hardware.target, hardware.cores)
        peak = {"flops": found.flops, "bandwidth": found.bandwidth}
    pulse.tell("result", task="hardware", hardware=hardware.to_json(), peak=peak, versions=runtime.versions())
