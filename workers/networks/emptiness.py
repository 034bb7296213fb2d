"""Tensors without elements, which TVM does not cut out."""

from __future__ import annotations

from onnx import ModelProto

from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types, prune, told, uses
from workers.networks.shapes import tensor_shapes


def drop_empty_parts(model: ModelProto) -> str | None:
    """Concatenations leave out parts without elements. Raises NetworkError for an empty Slice that something else reads."""
    if "Slice" not in operator_types(model):
        return None
    empty = {name for name, shape in tensor_shapes(model).items() if shape.static is not None and 0 in shape.static}
    dropped = 0
    for node in model.graph.node:
        kept = [name for name in node.input if name not in empty] if node.op_type == "Concat" else []
        if kept and len(kept) < len(node.input):
            dropped += len(node.input) - len(kept)
            node.input[:] = kept
            node.op_type = "Concat" if len(kept) > 1 else "Identity"
            if node.op_type == "Identity":
                del node.attribute[:]
    if dropped:
        prune(model)
    read = uses(model)
    for node in model.graph.node:
        if node.op_type == "Slice" and node.output[0] in empty and node.output[0] in read:
            reason = "nothing is between where it begins and where it ends, and TVM cuts no empty tensors out"
            raise NetworkError(f"Slice {node.name or node.output[0]}", reason, "export the network without it")
    return told(
        dropped,
        "part without elements was left out of a concatenation",
        "parts without elements were left out of concatenations",
    )
