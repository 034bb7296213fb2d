"""Constants worked out before the network is imported, and BatchNormalization folded into the convolution before it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Weights, attribute, operator_types, replace_nodes, rewrite, told, uses
from workers.networks.inference import evaluate, shape_value
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD
from workers.networks.subgraphs import subgraphs

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
# onnx's own evaluation takes lengths of numbers with their signs, the batch for channels and the bias of all groups for each
# one's, and looks many rows of one column up in themselves.
_WRONG = frozenset({"LpNormalization", "LRN", "ConvTranspose", "GatherElements"})
# Kept as they are: the pair of them tells a quantized network.
_QUANTIZING = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
LARGEST = 2**28
"""Elements of the largest constant that is written out."""
LARGEST_EYE = 2**24
"""Of one that is nearly all zeros: of numbers of 8 bytes LARGEST would be more than a file may hold."""


def fold_constants(model: ModelProto) -> str | None:
    """Replaces operators whose inputs are all constant by their result. Shapes of static tensors count as constant, and so does
    an EyeLike that names its type: TVM makes one of its input's alone."""
    shapes = tensor_shapes(model)
    weights = Weights(model.graph)
    opsets = list(model.opset_import)
    kept: list[NodeProto] = []
    folded = 0
    for node in model.graph.node:
        values = _value(node, weights, shapes, opsets)
        if values is None:
            kept.append(node)
            continue
        folded += 1
        for name, value in zip(node.output, values, strict=True):
            weights.put(name, value)
    replace_nodes(model.graph, kept)
    return told(folded, "operator with constant results was folded", "operators with constant results were folded")


def _value(
    node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape], opsets: list[object]
) -> list[Array] | None:
    if node.op_type == "Shape" or (node.op_type == "EyeLike" and attribute(node, "dtype")):
        value = shape_value(node, shapes) if node.op_type == "Shape" else _eye(node, shapes)
        return None if value is None else [value]
    if node.domain not in STANDARD or node.op_type in _RANDOM | _QUANTIZING | _WRONG or not all(node.output):
        return None
    if any(name and name not in weights for name in node.input) or any(True for _ in subgraphs(node)):
        return None
    known = [shapes.get(name) for name in node.output]
    if any(shape is None or shape.static is None or shape.elements > LARGEST for shape in known):
        return None
    return evaluate(node, {name: weights.get(name) for name in node.input if name}, opsets)


def _eye(node: NodeProto, shapes: Mapping[str, TensorShape]) -> Array | None:
    like = shapes.get(node.input[0])
    if like is None or like.static is None or len(like.static) != 2 or like.elements > LARGEST_EYE:
        return None
    rows, columns = like.static
    return np.eye(rows, columns, attribute(node, "k", 0), helper.tensor_dtype_to_np_dtype(attribute(node, "dtype")))


def fold_batch_norms(model: ModelProto) -> str | None:
    """Scales the weights of a convolution by the constant statistics of the BatchNormalization that alone reads it."""
    graph = model.graph
    weights, readers = Weights(graph), uses(model)
    makers = {node.output[0]: node for node in graph.node if _scales_by_channel(node)}
    folded: set[str] = set()
    for node in graph.node:
        conv = makers.get(node.input[0]) if node.op_type == "BatchNormalization" else None
        if conv is None or readers[conv.output[0]] != 1 or not _constant(node, weights):
            continue
        if any(name not in weights for name in conv.input[1:] if name):
            continue
        _fold(node, conv, weights)
        folded.add(node.output[0])
    replace_nodes(graph, [n for n in graph.node if not (n.op_type == "BatchNormalization" and n.output[0] in folded)])
    return told(
        len(folded),
        "BatchNormalization was folded into a convolution",
        "BatchNormalizations were folded into convolutions",
    )


def _scales_by_channel(node: NodeProto) -> bool:
    return node.op_type == "Conv" or bool(node.op_type == "ConvTranspose" and attribute(node, "group", 1) == 1)


def batch_norms_to_products(model: ModelProto) -> str | None:
    """Writes those with constant statistics that no convolution took as a product and a sum, as ONNX Runtime computes them: TVM
    subtracts, divides, multiplies and adds."""
    if "BatchNormalization" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def written(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == "BatchNormalization" else None
        single = shape is not None and _constant(node, weights) and weights.get(node.input[1]).dtype == np.float32
        if shape is None or shape.dims is None or len(shape.dims) < 2 or not single:
            return []
        factor, mean, shift = _statistics(node, weights)
        name, by_channel = node.output[0], (1, -1, *[1] * (len(shape.dims) - 2))
        scaled = f"{name}__scaled"
        constants = [
            weights.put(f"{name}__{what}", values.astype(np.float32).reshape(by_channel))
            for what, values in (("factor", factor), ("shift", shift - mean * factor))
        ]
        return [
            helper.make_node("Mul", [node.input[0], constants[0]], [scaled]),
            helper.make_node("Add", [scaled, constants[1]], [name]),
        ]

    return told(
        rewrite(model.graph, written),
        "BatchNormalization was written as a product and a sum",
        "BatchNormalizations were written as products and sums",
    )


def _constant(norm: NodeProto, weights: Weights) -> bool:
    """Whether its statistics are, a number a channel, and nothing else is asked of it."""
    if len([name for name in norm.output if name]) != 1 or attribute(norm, "training_mode", 0):
        return False
    return bool(attribute(norm, "spatial", 1)) and all(name in weights for name in norm.input[1:5])


def _statistics(norm: NodeProto, weights: Weights) -> tuple[Array, Array, Array]:
    """Of each channel the factor, the mean and what is added, as float64."""
    scale, shift, mean, variance = (weights.get(name).astype(np.float64) for name in norm.input[1:5])
    return scale / np.sqrt(variance + attribute(norm, "epsilon", 1e-5)), mean, shift


def _fold(norm: NodeProto, conv: NodeProto, weights: Weights) -> None:
    factor, mean, shift = _statistics(norm, weights)
    kernel = weights.get(conv.input[1])
    bias = (
        weights.get(conv.input[2]).astype(np.float64) if len(conv.input) > 2 and conv.input[2] else np.zeros_like(mean)
    )
    by_channel = (1, -1) if conv.op_type == "ConvTranspose" else (-1, 1)
    scaled = kernel * factor.reshape(*by_channel, *[1] * (kernel.ndim - 2))
    kernel_name = weights.put(f"{conv.input[1]}__folded", scaled.astype(kernel.dtype))
    bias_name = weights.put(f"{norm.output[0]}__bias", ((bias - mean) * factor + shift).astype(kernel.dtype))
    conv.input[:] = [conv.input[0], kernel_name, bias_name]
    conv.output[:] = [norm.output[0]]
