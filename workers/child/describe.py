"""Short tasks: what a network is, and what this machine is and can do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Set
from typing import Any

from onnx import ModelProto, inliner

from workers.baselines.session import refusal
from workers.child.pulse import Pulse
from workers.child.turn import TurnLock
from workers.messages.channel import ControlReader
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types
from workers.networks.importable import SIZED_BY_VALUES, check_operators
from workers.networks.inspect import Inspection, inspect_model
from workers.networks.opsets import WRITTEN_OUT
from workers.networks.precision import INTEGER_OPERATORS
from workers.networks.recurrent import ACTIVATIONS
from workers.networks.shape import nested
from workers.networks.shapes import tensor_shapes

PATIENCE = 600.0
"""s without an event until a measurement of the machine counts as hung; it takes a quarter of a minute."""

LARGEST, LONGEST, MOST_CORES = 1 << 16, 200, 4096
"""Bytes of what a device says of itself, letters of a word of it, and cores."""
TRIPLE = re.compile(r"[a-z0-9_]+-linux-gnu")
ARCHITECTURE = re.compile(r"sm_[0-9]{2,3}[af]?")

OTHERWISE = "export it in float32 or float16, with an operator set and an IR version that it takes"

STAND_IN = 32
"""For a size that is not known yet, behind the batch: enough for the strides of most networks."""


def inspect_network(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {network}. Tells a result {inspection}, or fails with the reason."""
    pulse.tell("phase", name="inspecting", text="reading the network")
    model = load(order["network"])
    inspection, kinds = inspect_model(model), operator_types(model)
    del model
    try:
        check_operators(kinds - INTEGER_OPERATORS)
    except NetworkError:
        # Constants may be computed with it, or cleaning writes it out by others.
        written_out = SIZED_BY_VALUES | ACTIVATIONS.keys() | WRITTEN_OUT
        check_operators(_cleaned_types(order["network"], inspection, written_out) - INTEGER_OPERATORS)
    if reason := refusal(order["network"]):
        raise NetworkError(
            "the network", f"ONNX Runtime, which it is compared with, does not take it: {reason}", OTHERWISE
        )
    pulse.tell("result", task="inspect", inspection=inspection.to_json())


def _cleaned_types(network: str, inspection: Inspection, sized: Set[str]) -> set[str]:
    """Operator types that cleaning leaves, with stand-ins for the sizes that are given later. Whether those of `sized`
    stay is for the sizes: they count where they stay though the sizes of all that they read are known."""
    model, chosen = load(network), dict[str, int]()
    if model.functions:  # or they would be its operators where the stand-ins do not fit
        model = inliner.inline_local_functions(model)
    sizes: dict[str, Any] = {port.name: list(port.shape) for port in inspection.inputs if port.shape is not None}
    for one in inspection.dynamic:
        size = chosen.setdefault(one.symbol or f"{one.input} {one.axis}", STAND_IN if one.axis else 1)
        sizes[one.input][one.axis] = size
    try:
        model = clean(model, sizes, lambda same: same)[0]  # the own passes do, and take little time
    except NetworkError:
        if not inspection.dynamic:
            raise
        return operator_types(model) - sized  # the stand-ins do not fit
    kinds = operator_types(model)
    return kinds - _unsettled(model, sized) if inspection.dynamic else kinds


def _unsettled(model: ModelProto, kinds: Set[str]) -> set[str]:
    """Those of `kinds` of which an operator reads something whose sizes are not known."""
    known = {name for name, shape in tensor_shapes(model).items() if shape.static is not None} | {""}
    nodes = [node for graph in nested(model.graph) for node in graph.node if node.op_type in kinds]
    return {node.op_type for node in nodes if not known.issuperset(node.input)}


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
