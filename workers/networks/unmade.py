"""Outputs that an operator of ONNX has and TVM's does not make."""

from __future__ import annotations

from onnx import ModelProto

from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types, uses
from workers.networks.subgraphs import nested

UNMADE = {
    "LayerNormalization": (
        "a mean or a deviation of it is read, which is for training",
        "export the network for inference",
    ),
    "MaxPool": (
        "the places of its largest numbers are read, which TVM does not find",
        "export the network without MaxUnpool",
    ),
}
"""Operators of which TVM makes the first output alone: why not the others, and what to do."""


def refuse_unmade_outputs(model: ModelProto) -> str | None:
    """Raises NetworkError where something reads one."""
    if not operator_types(model) & UNMADE.keys():
        return None
    read = uses(model)
    for node in (node for graph in nested(model.graph) for node in graph.node if node.op_type in UNMADE):
        if any(name in read for name in node.output[1:]):
            reason, instead = UNMADE[node.op_type]
            raise NetworkError(f"{node.op_type} {node.name or node.output[0]}", reason, instead)
    return None
