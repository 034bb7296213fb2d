"""In which numbers a network computes, and which of them are taken."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto, NodeProto, TensorProto

from workers.networks.errors import NetworkError
from workers.networks.shape import TensorShape
from workers.networks.subgraphs import nested

PAIRS = frozenset({"QuantizeLinear", "DequantizeLinear"})
INTEGER_OPERATORS = frozenset(
    "QLinearConv QLinearMatMul QGemm ConvInteger MatMulInteger QLinearAdd QLinearMul QLinearConcat QLinearAveragePool "
    "QLinearGlobalAveragePool QLinearSigmoid QLinearLeakyRelu QLinearSoftmax".split()
)
"""Operators on stored integers that are written as real ones between pairs, see `quantized_operators`."""
ROUNDING = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"}) | INTEGER_OPERATORS
"""Operators that round to a quantisation step. DequantizeLinear alone does not: weights that are stored as integers are
constants like any others."""
_STORED_BY = {
    "QuantizeLinear": 1,
    "QLinearConcat": 0,
    **dict.fromkeys(("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"), 6),
    "QGemm": 7,
}
TAKEN = frozenset(
    int(kind)
    for kind in (
        TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8,
        TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64,
    )
)  # fmt: skip
WEIGHTS_ONLY = frozenset({int(TensorProto.INT4), int(TensorProto.UINT4)})
"""Taken as constants that are dequantised."""
_PRODUCTS = frozenset({"Conv", "Gemm", "MatMul"})

_OF_TEXT = (
    "networks that read or make text cannot be tuned: TVM computes with numbers alone",
    "export the network behind its tokeniser, with numbers in place of words, and do the rest outside",
)
_OF_OTHERS = (
    "networks in these numbers cannot be run here: ONNX Runtime's CPU kernels, which are the reference, lack them",
    "export the network in float32, float16 or 8-bit integers",
)
_COMPUTED = {
    "float16": "float16 is computed as float32, inputs and outputs stay float16: sums of halves lose most of their digits",
    "quantised": "quantised integers are computed exactly: as whole numbers of 8 or 16 bits where this processor multiplies "
    "them, as float32 numbers elsewhere",
}


def check_types(model: ModelProto, shapes: Mapping[str, TensorShape]) -> None:
    """NetworkError for a tensor whose numbers neither TVM nor the reference compute with."""
    constants = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" or (node.input and constants.issuperset(filter(None, node.input))):
            constants.update(node.output)
    for name, shape in shapes.items():
        if shape.dtype in TAKEN or shape.dtype == TensorProto.UNDEFINED:
            continue
        if shape.dtype in WEIGHTS_ONLY and name in constants:
            continue
        raise NetworkError(
            f"{name}: {_named(shape.dtype)}", *(_OF_TEXT if shape.dtype == TensorProto.STRING else _OF_OTHERS)
        )


def precision(model: ModelProto) -> str:
    """The numbers a network computes in, by its weights: float32, float16, or how it is quantised.

    One whose weights alone are quantised, and whose sums are not, computes in float32.
    """
    if found := _quantized(model):
        return found
    kinds = {int(tensor.data_type) for tensor in model.graph.initializer}
    kinds |= {value.type.tensor_type.elem_type for value in model.graph.input}
    return "float16" if TensorProto.FLOAT16 in kinds else "float64" if TensorProto.DOUBLE in kinds else "float32"


def stored_by(node: NodeProto) -> str:
    """The scale by which its result is stored; "" where it is not, or by one that is found meanwhile."""
    if node.op_type not in ROUNDING - {"DynamicQuantizeLinear", "ConvInteger", "MatMulInteger"}:
        return ""
    place = _STORED_BY.get(node.op_type, 3)  # behind x, its scale and its zero
    return str(node.input[place]) if place < len(node.input) else ""


def is_quantised(model: ModelProto) -> bool:
    """Whether it rounds to quantisation steps while it runs."""
    return bool(_quantized(model))


def how_computed(model: ModelProto) -> list[str]:
    """Sentences for a run's log on a network that is computed in other numbers than its own."""
    return [_COMPUTED[name]] if (name := precision(model).split(" ")[0]) in _COMPUTED else []


def multiplies_computed_integers(model: ModelProto) -> bool:
    """Whether a quantised network multiplies two tensors neither of which is constant, as a transformer's attention does."""
    graphs = [*nested(model.graph)]
    known = {"", *(tensor.name for graph in graphs for tensor in graph.initializer)}
    computed = False
    for node in (node for graph in graphs for node in graph.node):
        if known.issuperset(node.input):
            known.update(node.output)
        computed |= node.op_type in _PRODUCTS and known.isdisjoint(node.input[:2])
    return computed and any(node.op_type == "DequantizeLinear" for graph in graphs for node in graph.node)


def _quantized(model: ModelProto) -> str:
    kinds = {node.op_type for node in model.graph.node}
    if kinds & {"DynamicQuantizeLinear", "DynamicQuantizeMatMul"}:  # the second of a network as ONNX Runtime runs it
        return "quantised at run time"
    if kinds & INTEGER_OPERATORS:
        return "quantised (integer operators)"
    return "quantised (QDQ)" if kinds & ROUNDING else ""


def _named(dtype: int) -> str:
    return TensorProto.DataType.Name(dtype).lower() if dtype in TensorProto.DataType.values() else f"type {dtype}"
