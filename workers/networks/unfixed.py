"""Sizes and places that an operator reads, and that TVM wants to know before the network runs."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from workers.networks.errors import NetworkError
from workers.networks.graph import called, live, operator_types
from workers.networks.importable import SIZED_BY_VALUES
from workers.networks.structure import STANDARD
from workers.networks.subgraphs import subgraphs

_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
FIXED: Mapping[str, Mapping[int, str]] = {
    "AffineGrid": {1: "sizes"},
    "CumSum": {1: "axis"},
    "Expand": {1: "sizes"},
    "OneHot": {1: "depth", 2: "values"},
    "Pad": {1: "pads", 2: "value", 3: "axes"},
    "Reshape": {1: "sizes"},
    "Split": {1: "sizes"},
    "TopK": {1: "k"},
    **{f"Reduce{kind}": {1: "axes"} for kind in _REDUCTIONS},
}
"""Operators, the places of those of their inputs that TVM takes as constants alone, and what these are."""
_BY_SIZES = frozenset({"EyeLike", "RandomNormalLike", "RandomUniformLike", "Shape", "Size"})
"""Operators that read no values."""


def refuse_unfixed_inputs(model: ModelProto) -> str | None:
    """Raises NetworkError where inputs of the network decide on one of FIXED. What an operator with graphs inside makes, or one
    that is not ONNX's, may depend on sizes alone: there the import tells, as it does of operators of SIZED_BY_VALUES."""
    if operator_types(model) & SIZED_BY_VALUES:
        return None
    decided = {value.name for value in model.graph.input}
    for node in live(model.graph):
        if node.domain not in STANDARD or any(True for _ in subgraphs(node)):
            continue
        for place, word in FIXED.get(node.op_type, {}).items():
            if decided.intersection(node.input[place : place + 1]):
                raise NetworkError(
                    called(node),
                    f"inputs of the network decide on its {word}, which a library is made for",
                    f"make its {word} a constant, and export the network again",
                )
        # Of what it is to be like a CastLike reads the type.
        read = node.input[:1] if node.op_type == "CastLike" else node.input
        if node.op_type not in _BY_SIZES and decided.intersection(read):
            decided.update(filter(None, node.output))
    return None
