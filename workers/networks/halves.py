"""float16 networks computed in float32, their inputs and outputs left as they are.

x86 processors without AVX512-FP16 only convert halves, and TVM adds up a convolution in the type of its inputs: a sum of
a thousand halves has lost most of its digits. ONNX Runtime computes such networks in float32 there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from workers.networks.graph import attribute, rename, replace_nodes
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.subgraphs import subgraphs

HALF, SINGLE = int(TensorProto.FLOAT16), int(TensorProto.FLOAT)
_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type"})
"""Attributes that name an element type."""
_HANDING_ON = frozenset(
    "Constant Identity Reshape Flatten Transpose Squeeze Unsqueeze Concat Gather Slice Split Expand".split()
)
"""Operators that compute nothing."""


def halves_to_singles(model: ModelProto) -> str | None:
    """Every float16 tensor becomes float32, its values unchanged; Casts stand behind the inputs and before the outputs."""
    graph = model.graph
    if not _widened(graph):
        return None
    heads = [value for value in graph.input if _is_half(value)]
    handed_on = {value.name for value in heads}  # an input that is an output as it is
    tails = [value for value in graph.output if _is_half(value) and value.name not in handed_on]
    rename(graph, {value.name: f"{value.name}__single" for value in heads})
    last = {value.name for value in tails}
    for tensor in graph.initializer:  # a constant may be an output
        tensor.name = f"{tensor.name}__single" if tensor.name in last else tensor.name
    for node in graph.node:
        node.output[:] = [f"{name}__single" if name in last else name for name in node.output]
    rename(graph, {name: f"{name}__single" for name in last})
    casts = [helper.make_node("Cast", [v.name], [f"{v.name}__single"], to=SINGLE) for v in heads]
    ends = [helper.make_node("Cast", [f"{v.name}__single"], [v.name], to=HALF) for v in tails]
    replace_nodes(graph, [*casts, *graph.node, *ends])
    del graph.value_info[:]
    _drop_idle_casts(model)
    return "float16 was widened to float32, with float16 inputs and outputs"


def computes_in_halves(model: ModelProto, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether an operator adds or rounds in float16, by the `shapes` of all its tensors.

    Weights that are stored so and cast before they are used round nothing, nor does a Cast that makes an output.
    """
    halves = {name for name, shape in shapes.items() if shape.dtype == HALF}
    fixed = {tensor.name for tensor in model.graph.initializer} | {value.name for value in model.graph.output}
    for node in model.graph.node:
        if node.op_type in _HANDING_ON:
            continue
        if node.op_type == "Cast":
            if node.output[0] in halves and not fixed & {node.input[0], node.output[0]}:
                return True
        elif not halves.isdisjoint((*node.input, *node.output)):
            return True
        elif any(_holds_halves(inner) for inner in subgraphs(node)):
            return True
    return False


def _holds_halves(graph: GraphProto) -> bool:
    return any(tensor.data_type == HALF for tensor in _tensors(graph)) or any(
        found.name in _TYPES and found.i == HALF for node in graph.node for found in node.attribute
    )


def _widened(graph: GraphProto) -> bool:
    """Constants, casts and inner graphs in float32; whether there was anything to do, the ports of `graph` counted."""
    changed = any(_is_half(value) for value in (*graph.input, *graph.output))
    for tensor in _tensors(graph):
        if tensor.data_type == HALF:
            values = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            changed = True
    for node in graph.node:
        for found in node.attribute:
            if found.name in _TYPES and found.i == HALF:
                found.i = SINGLE
                changed = True
        for inner in subgraphs(node):
            changed |= _widened(inner)
            for value in (*inner.input, *inner.output, *inner.value_info):
                if _is_half(value):
                    value.type.tensor_type.elem_type = SINGLE
    return changed


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for found in node.attribute:
            if found.HasField("t"):
                yield found.t


def _is_half(value: ValueInfoProto) -> bool:
    return bool(value.type.tensor_type.elem_type == HALF)


def _drop_idle_casts(model: ModelProto) -> None:
    """A Cast between the two has become one from float32 to float32."""
    shapes = tensor_shapes(model)
    for node in model.graph.node:
        if node.op_type != "Cast" or node.input[0] not in shapes:
            continue
        if shapes[node.input[0]].dtype == attribute(node, "to") == SINGLE:
            node.CopyFrom(helper.make_node("Identity", list(node.input), list(node.output), name=node.name))
