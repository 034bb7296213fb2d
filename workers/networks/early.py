"""Operators that ONNX Runtime has under ONNX's name before ONNX has them: its own optimiser writes them so."""

from __future__ import annotations

from onnx import ModelProto, helper

from workers.networks.structure import CONTRIBUTED, STANDARD, opset
from workers.networks.subgraphs import every

_NEVER = 1 << 30
EARLY = {"LayerNormalization": 17, "SimplifiedLayerNormalization": _NEVER}
"""By the operator set from which on ONNX has the same."""


def set_aside(model: ModelProto) -> ModelProto:
    """The same model, in which they are of ONNX Runtime's own domain, of which onnx's checker and converter ask nothing."""
    version, found = opset(model), False
    for node in every(model.graph.node):
        if node.domain in STANDARD and version < EARLY.get(node.op_type, 0):
            node.domain, found = CONTRIBUTED, True
    if found and CONTRIBUTED not in {one.domain for one in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(CONTRIBUTED, 1))
    return model


def put_back(model: ModelProto) -> ModelProto:
    """The same model, in which they are ONNX's again; ONNX Runtime's domain has none of these names."""
    for node in every(model.graph.node):
        if node.domain == CONTRIBUTED and node.op_type in EARLY:
            node.domain = STANDARD[0]
    return model
