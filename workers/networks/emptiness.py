"""Tensors without elements, which TVM does not cut out."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute, called, operator_types, prune, set_attributes, told, uses
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes

_MAKING = frozenset({"Expand", "Slice", "Split", "TopK"})
"""Operators that make such tensors in ways that TVM does not know; others are looked at where these are."""

_NOTHING = {"Slice": "nothing is between where it begins and where it ends", "Split": "a part of it has no elements"}


def drop_empty_parts(model: ModelProto) -> str | None:
    """Concatenations and Splits leave out parts without elements. Raises NetworkError for those of a Slice and a Split that
    something else reads."""
    if not _MAKING & operator_types(model):
        return None
    shapes = tensor_shapes(model)
    empty = {name for name, shape in shapes.items() if shape.static is not None and 0 in shape.static}
    if not empty:
        return None
    dropped = 0
    for node in model.graph.node:
        kept = [name for name in node.input if name not in empty] if node.op_type == "Concat" else []
        if kept and len(kept) < len(node.input):
            dropped += len(node.input) - len(kept)
            node.input[:] = kept
            node.op_type = "Concat" if len(kept) > 1 else "Identity"
            if node.op_type == "Identity":
                del node.attribute[:]
    prune(model)  # who read them may be read by nobody
    read, weights = uses(model), Weights(model.graph)
    for node in model.graph.node:
        if node.op_type == "Split":
            _keep_parts(node, {*node.output} - (empty - read.keys()), shapes, weights)
        cut = node.output[:1] if node.op_type == "Slice" else node.output[:-1] if node.op_type == "Split" else []
        if not empty.isdisjoint(cut):  # TVM makes one that is a Split's last
            raise NetworkError(
                called(node),
                f"{_NOTHING[node.op_type]}, and TVM cuts no empty tensors out",
                "export the network without it",
            )
    return told(
        dropped,
        "part without elements was left out of a concatenation",
        "parts without elements were left out of concatenations",
    )


def _keep_parts(node: NodeProto, names: Set[str], shapes: Mapping[str, TensorShape], weights: Weights) -> None:
    """Takes the others off a Split."""
    kept = [name for name in node.output if name in names]
    sizes = [shape.static[attribute(node, "axis", 0)] for name in kept if (shape := shapes.get(name)) and shape.static]
    if len(kept) == len(node.output) or len(sizes) < len(kept):
        return
    node.output[:] = kept
    if len(kept) == 1:
        node.op_type, node.input[:] = "Identity", node.input[:1]
        del node.attribute[:]
    else:
        _set_sizes(node, sizes, f"{kept[0]}__sizes", weights)


def _set_sizes(node: NodeProto, sizes: list[int], name: str, weights: Weights) -> None:
    if attribute(node, "split") is not None:  # before operator set 13
        set_attributes(node, split=sizes)
    else:
        node.input[:] = [node.input[0], weights.put(name, np.asarray(sizes, np.int64))]
        set_attributes(node, num_outputs=None)
