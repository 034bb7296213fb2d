"""Powers of one type: TVM raises real numbers only, and to exponents of the type that they have themselves."""

from __future__ import annotations

from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Weights, operator_types, rewrite, told
from workers.networks.shapes import tensor_shapes

_REAL = frozenset({int(TensorProto.FLOAT), int(TensorProto.DOUBLE)})


def powers_of_one_type(model: ModelProto) -> str | None:
    """x ** 2 with a whole 2, as exporters of PyTorch write it, gets a real one; whole numbers are raised as doubles, as ONNX
    Runtime does it, which are exact up to 2**53."""
    if "Pow" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def raised(node: NodeProto) -> list[NodeProto]:
        types = [shapes[name].dtype for name in node.input if name in shapes] if node.op_type == "Pow" else []
        known = len(types) == 2 and TensorProto.UNDEFINED not in types
        return _raised(node, types, weights) if known and not (types[0] in _REAL and types[0] == types[1]) else []

    written = rewrite(model.graph, raised)
    return told(
        written,
        "power was written with a base and an exponent of one type of real numbers",
        "powers were written with a base and an exponent of one type of real numbers",
    )


def _raised(node: NodeProto, types: list[int], weights: Weights) -> list[NodeProto]:
    base, (result,) = types[0], node.output
    real = base if base in _REAL else int(TensorProto.DOUBLE)
    casts: list[NodeProto] = []
    for place, (name, dtype) in enumerate(zip(node.input, types, strict=True)):
        if dtype == real:
            continue
        cast = f"{result}__{'exponent' if place else 'base'}"
        if name in weights:
            cast = weights.put(cast, weights.get(name).astype(helper.tensor_dtype_to_np_dtype(real)))
        else:
            casts.append(helper.make_node("Cast", [name], [cast], to=real))
        node.input[place] = cast
    if real == base:
        return [*casts, node]
    node.output[0] = f"{result}__real"
    return [*casts, node, helper.make_node("Cast", [node.output[0]], [result], to=base)]
