"""What an operator of ONNX makes and TVM's does not: outputs beside the first, and what is for training."""

from __future__ import annotations

from collections.abc import Set

from onnx import ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute, called, operator_types, uses
from workers.networks.subgraphs import every

FOR_INFERENCE = "export the network for inference"
BEHIND_EVAL = f"{FOR_INFERENCE}: of PyTorch, behind model.eval()"
UNMADE = {
    "BatchNormalization": (
        "the mean or the variance that it counts is read, which is for training",
        BEHIND_EVAL,
    ),
    "Dropout": ("which numbers it drops is read, which is for training", BEHIND_EVAL),
    "LayerNormalization": ("a mean or a deviation of it is read, which is for training", FOR_INFERENCE),
    "MaxPool": (
        "the places of its largest numbers are read, which TVM does not find",
        "export the network without MaxUnpool",
    ),
}
"""Operators of which TVM makes the first output alone: why not the others, and what to do."""


def refuse_unmade_outputs(model: ModelProto) -> str | None:
    """Raises NetworkError where something reads one, and for what trains: TVM would take it for what does not."""
    if not operator_types(model) & UNMADE.keys():
        return None
    read, weights = uses(model), Weights(model.graph)
    given = {value.name for value in model.graph.input}
    for node in (node for node in every(model.graph.node) if node.op_type in UNMADE):
        reason, instead = UNMADE[node.op_type]
        if _trains(node, weights, given):
            reason, instead = "it is in training mode", BEHIND_EVAL
        elif not any(name in read for name in node.output[1:]):
            continue
        raise NetworkError(called(node), reason, instead)
    return None


def _trains(node: NodeProto, weights: Weights, given: Set[str]) -> bool:
    """Whether a BatchNormalization goes by the batch's own statistics, or a Dropout drops, as far as constants tell."""
    if node.op_type == "BatchNormalization":
        return bool(attribute(node, "training_mode", 0))
    _, ratio, mode = [*node.input, "", ""][:3] if node.op_type == "Dropout" else ("", "", "")
    if ratio in weights and not weights.get(ratio).any():
        return False
    return bool(weights.get(mode).any()) if mode in weights else mode in given
