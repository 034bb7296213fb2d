"""What a network is, and whether it can be imported."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from onnx import ModelProto

from workers.baselines.session import refusal
from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types
from workers.networks.importable import COUNTED, SIZED_BY_VALUES, check_operators
from workers.networks.inspect import Inspection, inspect_model
from workers.networks.normalizations import BY_LENGTH
from workers.networks.opsets import WRITTEN_OUT
from workers.networks.precision import INTEGER_OPERATORS
from workers.networks.recurrent import ACTIVATIONS
from workers.networks.shapes import tensor_shapes
from workers.networks.subgraphs import every
from workers.networks.transforms import TRANSFORMS
from workers.networks.unmade import refuse_unmade_outputs

OTHERWISE = "export it in float32 or float16, with an operator set and an IR version that it takes"

STAND_IN = 32
"""For a size that is not known yet, behind the batch: enough for the strides of most networks."""


def inspect_network(order: dict[str, Any], control: ControlReader, pulse: Pulse) -> None:
    """An order: {network}. Tells a result {inspection}, or fails with the reason."""
    pulse.tell("phase", name="inspecting", text="reading the network")
    model = load(order["network"])
    inspection, kinds = inspect_model(model), operator_types(model)
    refuse_unmade_outputs(model)
    del model
    try:
        check_operators(kinds - INTEGER_OPERATORS)
    except NetworkError:
        # Constants may be computed with it, or cleaning writes it out by others.
        written_out = SIZED_BY_VALUES | ACTIVATIONS.keys() | WRITTEN_OUT | TRANSFORMS | {BY_LENGTH}
        try:
            cleaned = _cleaned_types(order["network"], inspection, written_out)
        except NetworkError:  # sizes behind what nobody takes are not known: that is not the reason
            check_operators(kinds - INTEGER_OPERATORS - written_out)
            raise
        check_operators(cleaned - INTEGER_OPERATORS)
    if reason := refusal(order["network"]):
        raise NetworkError(
            "the network", f"ONNX Runtime, which it is compared with, does not take it: {reason}", OTHERWISE
        )
    pulse.tell("result", task="inspect", inspection=inspection.to_json())


def _cleaned_types(network: str, inspection: Inspection, sized: Set[str]) -> set[str]:
    """Operator types that cleaning leaves, with stand-ins for the sizes that are given later. Whether those of `sized`
    stay is for the sizes: they count where they stay though the sizes of all that they read are known."""
    model, chosen = load(network), dict[str, int]()
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
    return kinds - _unsettled(model, sized) - COUNTED if inspection.dynamic else kinds


def _unsettled(model: ModelProto, kinds: Set[str]) -> set[str]:
    """Those of `kinds` of which an operator reads something whose sizes are not known."""
    known = {name for name, shape in tensor_shapes(model).items() if shape.static is not None} | {""}
    nodes = [node for node in every(model.graph.node) if node.op_type in kinds]
    return {node.op_type for node in nodes if not known.issuperset(node.input)}
