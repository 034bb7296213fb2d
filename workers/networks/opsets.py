"""Operators in forms that every part here reads: of operator set 13 or newer, and written out by their own definition.

onnx's own tools do both, on a copy without the large weights, which stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    defs,
    helper,
    inliner,
    shape_inference,
    version_converter,
)

from workers.networks.early import put_back, set_aside
from workers.networks.errors import NetworkError, one_line
from workers.networks.graph import (
    Weights,
    attribute,
    called,
    operator_types,
    replace_nodes,
    rewrite,
    set_attributes,
    told,
)
from workers.networks.shapes import skeleton, tensor_shapes
from workers.networks.structure import STANDARD, opset
from workers.networks.subgraphs import every, nested

OLDEST = 13
"""TVM reads older forms of Upsample, Resize, Slice, TopK and Pad as if they were newer: some of them wrongly, in silence."""
WRITTEN_OUT = frozenset(
    "Attention BlackmanWindow CausalConvWithState Celu CenterCropPad HammingWindow HannWindow LinearAttention "
    "NegativeLogLikelihoodLoss RotaryEmbedding SoftmaxCrossEntropyLoss SwiGLU Swish".split()
)
"""Standard operators that ONNX defines by others and TVM has no converter for; com.microsoft's Attention is another one."""


def raise_opset(model: ModelProto) -> str | None:
    """Files of older operator sets are taken to OLDEST; where that fails, the network keeps its own."""
    version = opset(model)
    if version >= OLDEST:
        return None
    try:
        _rewrite(model, lambda bare: put_back(version_converter.convert_version(set_aside(bare), OLDEST)))
    except Exception as error:  # whatever the C++ inside raises for an operator that it cannot convert
        return f"operator set {version} was kept: raising it to {OLDEST} failed ({one_line(str(error), 120)})"
    if version < 11:  # the converter leaves out how older Resizes, and Upsamples, found their places
        weights = Weights(model.graph)
        for node in (node for inner in nested(model.graph) for node in inner.node if node.op_type == "Resize"):
            _refuse_both_ways(node, weights)
            mode = "ceil" if _shrinks(node, weights) else "floor"  # as ONNX Runtime reads what says nothing of it
            set_attributes(node, coordinate_transformation_mode="asymmetric", nearest_mode=mode)
    for inner in reversed(
        [*nested(model.graph)]
    ):  # those inside of an operator first: replacing it takes along what it holds
        rewrite(inner, lambda node: over_all_behind(node) if node.op_type == "Hardmax" else [])
    return f"operator set {version} was raised to {OLDEST}"


def over_all_behind(node: NodeProto) -> list[NodeProto]:
    """An older Hardmax or Softmax looks at all axes from its own on together; of the first the converter forgets that."""
    (source,), (result,) = node.input, node.output
    flat, chosen, sizes = (f"{result}__{word}" for word in ("flat", "chosen", "sizes"))
    return [
        helper.make_node("Flatten", [source], [flat], axis=attribute(node, "axis", 1)),
        helper.make_node(node.op_type, [flat], [chosen], axis=-1),
        helper.make_node("Shape", [source], [sizes]),
        helper.make_node("Reshape", [chosen, sizes], [result]),
    ]


def _refuse_both_ways(resize: NodeProto, weights: Weights) -> None:
    """ONNX Runtime rounds by axis what says nothing of it; a Resize of today has one rounding."""
    if attribute(resize, "mode", b"nearest") != b"nearest" or len(resize.input) < 3 or resize.input[2] not in weights:
        return
    factors = weights.get(resize.input[2])
    shorter = 1 / factors[(factors > 0) & (factors < 1)]
    if factors.size and factors.max() > 1 and np.any(shorter != np.rint(shorter)):  # else no place lies between two
        reason = "it makes one axis longer and another shorter, which operator sets before 11 round differently"
        raise NetworkError(called(resize), reason, "export the network with operator set 11 or later")


def _shrinks(resize: NodeProto, weights: Weights) -> bool:
    """Whether it takes places from an axis and gives none to another, as far as constants tell."""
    if len(resize.input) < 3 or resize.input[2] not in weights:
        return False
    factors = weights.get(resize.input[2])
    return bool(factors.size and factors.max() <= 1 and factors.min() < 1)


def write_out_functions(model: ModelProto) -> str | None:
    """Operators of WRITTEN_OUT become those that define them, of which some are of it too."""
    written: list[str] = []
    while chosen := sorted(_standard_types(model) & WRITTEN_OUT - {*written}):
        try:
            _rewrite(model, partial(_written_out, kinds=chosen))
        except Exception as error:  # from the C++ inside; the import names the operator
            done = f"; {', '.join(written)} were" if written else ""
            return f"{', '.join(chosen)} could not be written out ({one_line(str(error), 120)}){done}"
        written += chosen
    return f"{', '.join(written)} became the operators that define them" if written else None


def _standard_types(model: ModelProto) -> set[str]:
    return {node.op_type for node in every(model.graph.node) if node.domain in STANDARD}


def _written_out(bare: ModelProto, kinds: Sequence[str]) -> ModelProto:
    """The inliner looks up the type of every input, of constants too, and of one that is left out, whose name is empty; an
    attribute that is left out is left out of the definition too."""
    for node in every(bare.graph.node):
        if node.op_type in kinds and node.domain in STANDARD:
            _with_defaults(node, opset(bare))
    # Of some, and of all behind them, onnx alone finds no type.
    known = {"": int(TensorProto.FLOAT), **{name: shape.dtype for name, shape in tensor_shapes(bare).items()}}
    have = {value.name for value in (*bare.graph.value_info, *bare.graph.input, *bare.graph.output)}
    bare.graph.value_info.extend(
        helper.make_tensor_value_info(name, kind, None) for name, kind in known.items() if kind and name not in have
    )
    typed = shape_inference.infer_shapes(bare)
    return inliner.inline_selected_functions(typed, [("", kind) for kind in kinds], inline_schema_functions=True)


def _with_defaults(node: NodeProto, version: int) -> None:
    """Gives it the attributes that it leaves at what ONNX has for them."""
    written = {one.name for one in node.attribute}
    for name, known in defs.get_schema(node.op_type, version).attributes.items():
        if name not in written and known.default_value.type != AttributeProto.UNDEFINED:
            node.attribute.append(known.default_value)


def casts_by_type(model: ModelProto) -> str | None:
    """CastLike of what has a known type becomes Cast, which a constant goes through: definitions of others are full of it."""
    if "CastLike" not in operator_types(model):
        return None
    shapes = tensor_shapes(model)

    def cast(node: NodeProto) -> list[NodeProto]:
        like = shapes.get(node.input[1]) if node.op_type == "CastLike" else None
        return [helper.make_node("Cast", node.input[:1], node.output, to=like.dtype)] if like and like.dtype else []

    return told(rewrite(model.graph, cast), "CastLike became a Cast", "CastLikes became Casts")


def _rewrite(model: ModelProto, change: Callable[[ModelProto], ModelProto]) -> None:
    """Takes over what `change` makes of the operators and small constants; raises what it raises, `model` then unchanged."""
    graph = model.graph
    store_constants(graph)
    bare = skeleton(model)
    result = change(bare)
    for role in ("input", "output"):
        if _names(bare.graph, role) != _names(result.graph, role):
            raise ValueError(f"it changed the {role}s of the network")
    large = set(_names(bare.graph, "input")) - set(_names(graph, "input"))
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in large:
            del graph.initializer[place]
    graph.initializer.extend(result.graph.initializer)
    replace_nodes(graph, result.graph.node)
    del model.opset_import[:]
    model.opset_import.extend(result.opset_import)


def store_constants(graph: GraphProto) -> None:
    """Tensors of Constant operators join the other weights, where the large ones are left alone."""
    kept = []
    for node in graph.node:
        tensor = next((a.t for a in node.attribute if a.name == "value"), None) if node.op_type == "Constant" else None
        if tensor is None:
            kept.append(node)
        else:
            stored = graph.initializer.add()
            stored.CopyFrom(tensor)
            stored.name = node.output[0]
    replace_nodes(graph, kept)


def _names(graph: GraphProto, role: str) -> list[str]:
    return [value.name for value in getattr(graph, role)]
