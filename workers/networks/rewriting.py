"""Operators replaced by ones that a compiler imports better; the results stay equal up to rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.errors import NetworkError
from workers.networks.graph import (
    Weights,
    attribute,
    called,
    has_convolutions,
    makers_of,
    operator_types,
    rename,
    replace_nodes,
    rewrite,
    told,
    uses,
)
from workers.networks.shape import TensorShape
from workers.networks.shapes import set_static_shapes, tensor_shapes
from workers.networks.structure import STANDARD, opset
from workers.networks.subgraphs import every

HIGHEST = 256.0
"""Of a Clip's upper bound c: c - (c - x) keeps x to 1.5e-5 there, and to nothing at 1e9."""
LARGEST = float(np.finfo(np.float32).max)


def drop_weight_inputs(model: ModelProto) -> str | None:
    """Weights that are listed as inputs too become constants."""
    weights = {tensor.name for tensor in model.graph.initializer}
    return _drop_inputs(
        model, weights, "weight was no longer listed as an input", "weights were no longer listed as inputs"
    )


def with_sizes(model: ModelProto, sizes: Mapping[str, Sequence[int]]) -> None:
    """Gives the inputs that something reads the sizes that a run has, by their names. Raises NetworkError where they do not
    fit."""
    drop_unused_inputs(model)
    read = {value.name for value in model.graph.input}
    set_static_shapes(model, {name: size for name, size in sizes.items() if name in read})


def drop_unused_inputs(model: ModelProto) -> str | None:
    """Inputs that nothing reads go; the network is then fed without them."""
    unused = {value.name for value in model.graph.input} - uses(model).keys()
    return _drop_inputs(model, unused, "input that nothing reads was dropped", "inputs that nothing reads were dropped")


def _drop_inputs(model: ModelProto, names: set[str], one: str, many: str) -> str | None:
    inputs = model.graph.input
    gone = [index for index, value in enumerate(inputs) if value.name in names]
    for index in reversed(gone):
        del inputs[index]
    # Before version 4 every weight had to be an input too.
    model.ir_version = max(4, model.ir_version)
    return told(len(gone), one, many)


def drop_unread_outputs(model: ModelProto) -> str | None:
    """Outputs that an operator may leave out, and nothing reads, are left out: TVM's converters know only the others."""
    read, version = uses(model), opset(model)
    dropped = 0
    for node in every(model.graph.node):
        while len(node.output) > 1 and node.output[-1] not in read and _optional(node, version):
            node.output.pop()
            dropped += 1
    return told(dropped, "output that nothing reads was left out", "outputs that nothing reads were left out")


def _optional(node: NodeProto, version: int) -> bool:
    """Whether the operator's last output is one that it may leave out."""
    try:
        named = onnx.defs.get_schema(node.op_type, version, node.domain).outputs
    except onnx.defs.SchemaError:
        return False
    place = len(node.output) - 1
    return place < len(named) and named[place].option == onnx.defs.OpSchema.FormalParameterOption.Optional


def drop_identities(model: ModelProto) -> str | None:
    """Identity, Split into one part, and Dropout outside training, hand on what they read."""
    graph = model.graph
    weights, readers = Weights(graph), uses(model)
    outputs = {value.name for value in graph.output}
    makers = makers_of(graph)
    names: dict[str, str] = {}
    gone: set[int] = set()
    for index, node in enumerate(graph.node):
        if not _passes_on(node, weights, readers):
            continue
        source, result = node.input[0], node.output[0]
        if result not in outputs:
            names[result] = names.get(source, source)  # no chain: many may read each of its links
            gone.add(index)
        elif source in makers and source not in outputs and readers[source] == 1:
            maker = makers[source]
            if _passes_on(maker, weights, readers):
                continue  # taken in the next round, when the one before is gone
            maker.output[:] = [result if name == source else name for name in maker.output]
            gone.add(index)
    replace_nodes(graph, [node for index, node in enumerate(graph.node) if index not in gone])
    rename(graph, names)
    return told(len(gone), "Identity or Dropout operator was removed", "Identity or Dropout operators were removed")


def _passes_on(node: NodeProto, weights: Weights, readers: dict[str, int]) -> bool:
    if node.op_type == "Identity" or (node.op_type == "Split" and len(node.output) == 1):
        return True
    if node.op_type != "Dropout" or any(readers[name] for name in node.output[1:] if name):
        return False
    if len(node.input) > 2 and node.input[2]:
        return node.input[2] in weights and not weights.get(node.input[2]).any()
    return True


def sort_topk(model: ModelProto) -> str | None:
    """TopK in any order becomes TopK in falling order, which is one of them: TVM has no other."""
    unsorted = [
        found
        for node in model.graph.node
        if node.op_type == "TopK" and node.domain in STANDARD
        for found in node.attribute
        if found.name == "sorted" and not found.i
    ]
    for found in unsorted:
        found.i = 1
    return told(len(unsorted), "TopK was made to sort what it finds", "TopKs were made to sort what they find")


def one_sided_infinities(model: ModelProto) -> str | None:
    """IsInf of one sign asks for the sign too: TVM's has both."""
    if "IsInf" not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def asking(node: NodeProto) -> list[NodeProto]:
        signs = [sign for name, sign in _SIGNS if node.op_type == "IsInf" and not attribute(node, name, 1)]
        if not signs:
            return []
        (source,), (result,) = node.input, node.output
        zero = weights.put(f"{result}__zero", np.asarray(0, _dtype(shapes, source)))
        found = f"{result}__both"
        nodes = [helper.make_node("IsInf", [source], [found])]
        for number, sign in enumerate(signs):
            side, kept = f"{result}__side_{number}", result if number == len(signs) - 1 else f"{result}__one"
            nodes += [helper.make_node(sign, [source, zero], [side]), helper.make_node("And", [found, side], [kept])]
            found = kept
        return nodes

    rewritten = rewrite(model.graph, asking)
    return told(rewritten, "IsInf of one sign asks for the sign too", "IsInfs of one sign ask for the sign too")


def _dtype(shapes: Mapping[str, TensorShape], name: str) -> Any:
    """Of a tensor of real numbers, float32 where nobody knows."""
    return helper.tensor_dtype_to_np_dtype(shapes[name].dtype if name in shapes else TensorProto.FLOAT)


_SIGNS = (("detect_negative", "Greater"), ("detect_positive", "Less"))
"""What an IsInf may leave out, and what is true of all that it then finds."""


def scalar_depths(model: ModelProto) -> str | None:
    """OneHot's constant depth is a whole number without an axis: TVM's converter takes no list of one, nor a real number."""
    weights = Weights(model.graph)
    rewritten = 0
    for node in model.graph.node:
        if node.op_type != "OneHot" or node.input[1] not in weights:
            continue
        depth = weights.get(node.input[1])
        if depth.size != 1:
            continue
        if depth.ndim or depth.dtype.kind not in "iu":
            node.input[1] = weights.put(f"{node.output[0]}__depth", depth.astype(np.int64).reshape(()))
            rewritten += 1
    return told(rewritten, "OneHot was given its depth as a number", "OneHots were given their depth as a number")


_ITS_OWN = frozenset({int(TensorProto.DOUBLE), int(TensorProto.INT64), int(TensorProto.UNDEFINED)})
"""What TVM makes of numbers that it is told one by one."""


def one_hots_of_their_type(model: ModelProto) -> str | None:
    """A Cast stands behind each OneHot of other numbers than float64 and int64: TVM makes it one of these."""
    if "OneHot" not in operator_types(model):
        return None
    shapes = tensor_shapes(model)

    def cast(node: NodeProto) -> list[NodeProto]:
        values = shapes.get(node.input[2]) if node.op_type == "OneHot" else None
        if values is None or values.dtype in _ITS_OWN:
            return []
        (result,) = node.output
        node.output[0] = f"{result}__wide"
        return [node, helper.make_node("Cast", [node.output[0]], [result], to=values.dtype)]

    rewritten = rewrite(model.graph, cast)
    return told(
        rewritten, "OneHot was cast to the numbers that it has", "OneHots were cast to the numbers that they have"
    )


HALF_PIXELS = 16
"""The operator set from which on RoiAlign takes half a pixel off unless it is told not to."""


def regions_half_a_pixel_off(model: ModelProto) -> str | None:
    """RoiAlign takes half a pixel off regions once they are scaled, TVM before: they are moved by the difference. Raises
    NetworkError for the largest of a region's samples: ONNX takes that of weighted pixels, TVM that of whole samples."""
    if "RoiAlign" not in operator_types(model):
        return None
    for node in every(model.graph.node):  # in branches too
        if node.op_type == "RoiAlign" and attribute(node, "mode", b"avg") == b"max":
            reason = "it takes the largest of its samples, which TVM computes in another way"
            raise NetworkError(called(node), reason, "export it with mode='avg'")
    weights, shapes, version = Weights(model.graph), tensor_shapes(model), opset(model)

    def moved(node: NodeProto) -> list[NodeProto]:
        if node.op_type != "RoiAlign" or not half_a_pixel_off(node, version):
            return []
        regions, there = node.input[1], f"{node.output[0]}__regions"
        by = np.asarray(0.5 - 0.5 / attribute(node, "spatial_scale", 1.0), _dtype(shapes, regions))
        node.input[1] = there
        return [helper.make_node("Add", [regions, weights.put(f"{there}_by", by)], [there]), node]

    return told(
        rewrite(model.graph, moved),
        "RoiAlign had its regions moved by the half pixel that TVM scales",
        "RoiAligns had their regions moved by the half pixel that TVM scales",
    )


def half_a_pixel_off(align: NodeProto, version: int) -> bool:
    """Whether a RoiAlign of this operator set takes half a pixel off another number than TVM does."""
    half = attribute(align, "coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    return version >= HALF_PIXELS and half and attribute(align, "spatial_scale", 1.0) not in (0.0, 1.0)


_OF_ITSELF = {"ReduceSumSquare": "Mul", "ReduceL1": "Abs", "ReduceL2": "Abs", "ReduceLogSum": "Log"}
"""What reducing along no axis makes of a number, where that is another one."""


def reductions_of_no_axis(model: ModelProto) -> str | None:
    """Reductions that are told to do nothing without axes still square, take the size or the logarithm: TVM hands on what they
    read."""
    if not operator_types(model) & _OF_ITSELF.keys():
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def alone(node: NodeProto) -> list[NodeProto]:
        axes = node.input[1] if len(node.input) > 1 else ""
        if node.op_type not in _OF_ITSELF or not attribute(node, "noop_with_empty_axes", 0):
            return []
        if axes and (axes not in weights or weights.get(axes).size):
            return []
        kind = _OF_ITSELF[node.op_type]
        if kind == "Log" and _dtype(shapes, node.input[0]).kind != "f":
            return []  # which is refused
        return [helper.make_node(kind, [node.input[0]] * (2 if kind == "Mul" else 1), node.output)]

    rewritten = rewrite(model.graph, alone)
    return told(rewritten, "reduction of no axis was written out", "reductions of no axis were written out")


def sums_to_additions(model: ModelProto) -> str | None:
    """Sum of n tensors becomes n - 1 Adds: Sum is imported as stack and reduce."""
    rewritten = rewrite(
        model.graph, lambda node: _chain(node) if node.op_type == "Sum" and node.domain in STANDARD else []
    )
    return told(rewritten, "Sum was written as Adds", "Sums were written as Adds")


def _chain(node: NodeProto) -> list[NodeProto]:
    terms, result = list(node.input), node.output[0]
    if len(terms) == 1:
        return [helper.make_node("Identity", terms, [result])]
    partial = [terms[0], *(f"{result}__sum{i}" for i in range(1, len(terms) - 1)), result]
    return [helper.make_node("Add", [partial[i], terms[i + 1]], [partial[i + 1]]) for i in range(len(terms) - 1)]


def clips_to_relus(model: ModelProto) -> str | None:
    """Clip(x, 0, c) becomes c - Relu(c - Relu(x)), and Relu(x) without an upper bound, in networks with convolutions.

    A convolution's layout passes through Relu and Sub but not through Clip, which is imported opaque, nor Min, which is
    imported as stack and reduce. Below 0 and from c on the result is exact; between them it is rounded to half a unit
    in the last place of c (2.4e-7 for c = 6): Clips beyond HIGHEST stay what they are.
    """
    graph = model.graph
    if opset(model) < 7 or not has_convolutions(model):
        return None
    weights, shapes = Weights(graph), tensor_shapes(model)

    def rectified(node: NodeProto) -> list[NodeProto]:
        shape = shapes.get(node.input[0]) if node.op_type == "Clip" else None
        bounds = _bounds(node, weights) if shape is not None and shape.dtype == 1 else None
        return [] if bounds is None or bounds[0] != 0.0 or not _plain(bounds[1]) else _relus(node, bounds[1], weights)

    rewritten = rewrite(graph, rectified)
    return told(
        rewritten,
        "Clip from 0 was written with Relu, through which a layout passes",
        "Clips from 0 were written with Relu, through which a layout passes",
    )


def _plain(upper: float) -> bool:
    """Whether a Clip from 0 to `upper` can be written with Relu and without loss."""
    return 0.0 < upper <= HIGHEST or upper >= LARGEST


def _bounds(node: NodeProto, weights: Weights) -> tuple[float, float] | None:
    """Lower and upper bound of a Clip where both are constant."""
    found = [float(attribute(node, "min", -np.inf)), float(attribute(node, "max", np.inf))]
    for position, name in enumerate(node.input[1:3]):
        if name and name not in weights:
            return None
        if name:
            found[position] = float(weights.get(name).reshape(()))
    return found[0], found[1]


def _relus(node: NodeProto, upper: float, weights: Weights) -> list[NodeProto]:
    source, result = node.input[0], node.output[0]
    if upper >= LARGEST:
        return [helper.make_node("Relu", [source], [result])]
    bound = weights.put(f"{result}__bound", np.asarray(upper, np.float32))
    return [
        helper.make_node("Relu", [source], [f"{result}__above"]),
        helper.make_node("Sub", [bound, f"{result}__above"], [f"{result}__room"]),
        helper.make_node("Relu", [f"{result}__room"], [f"{result}__left"]),
        helper.make_node("Sub", [bound, f"{result}__left"], [result]),
    ]


def fix_reshapes(model: ModelProto) -> str | None:
    """Reshape and Flatten get the numbers of their static result instead of 0, -1 or an axis."""
    if opset(model) < 5:
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    fixed = 0
    for node in model.graph.node:
        shape = shapes.get(node.output[0]) if node.op_type in ("Reshape", "Flatten") else None
        if shape is None or shape.static is None or 0 in shape.static:
            continue
        wanted = np.asarray(shape.static, np.int64)
        if (
            node.op_type == "Reshape"
            and node.input[1] in weights
            and np.array_equal(weights.get(node.input[1]), wanted)
        ):
            continue
        name = weights.put(f"{node.output[0]}__shape", wanted)
        node.CopyFrom(helper.make_node("Reshape", [node.input[0], name], list(node.output), name=node.name))
        fixed += 1
    return told(fixed, "Reshape was given a static shape", "Reshapes were given static shapes")
