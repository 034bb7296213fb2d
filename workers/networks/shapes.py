"""Shapes of every tensor, inferred on a copy of the graph without its weights, and bounds on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

from workers.networks.errors import NetworkError
from workers.networks.limits import DEFAULT, Limits
from workers.networks.structure import subgraphs

Dimension = int | str | None
"""A number, the name of a dynamic dimension, or None where nothing is known."""

SMALL = 1024
"""Weights up to so many elements are kept for shape inference: they may be shapes, axes or pads."""


@dataclass(frozen=True)
class TensorShape:
    """Element type (`onnx.TensorProto` number) and dimensions; `dims` is None where the rank is unknown."""

    dtype: int
    dims: tuple[Dimension, ...] | None

    @property
    def elements(self) -> int:
        """Number of elements, unknown dimensions counted as one."""
        return prod(d for d in self.dims or () if isinstance(d, int))

    @property
    def static(self) -> tuple[int, ...] | None:
        """The dimensions when all of them are known numbers, else None."""
        known = tuple(d for d in self.dims or () if isinstance(d, int))
        return known if self.dims is not None and len(known) == len(self.dims) else None


def shape_of(value: ValueInfoProto) -> TensorShape:
    """What a value info declares."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return TensorShape(tensor.elem_type, None)
    dims = (d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim)
    return TensorShape(tensor.elem_type, tuple(dims))


def skeleton(model: ModelProto) -> ModelProto:
    """A copy in which large weights became inputs of their shape: checking and inferring then cost nothing by size."""
    bare = ModelProto(ir_version=max(4, model.ir_version))
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    graph, source = bare.graph, model.graph
    graph.name = source.name or "network"
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.value_info.extend(source.value_info)
    graph.sparse_initializer.extend(source.sparse_initializer)
    have = {value.name for value in source.input}

    def stub(name: str, tensor: TensorProto) -> None:
        if name not in have:
            have.add(name)
            graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))

    for tensor in source.initializer:
        if prod(tensor.dims) > SMALL:
            stub(tensor.name, tensor)
        else:
            graph.initializer.append(tensor)
    for node in source.node:
        large = _large_constant(node)
        if large is None:
            graph.node.append(node)
        else:
            stub(node.output[0], large)
    return bare


def infer(model: ModelProto) -> ModelProto:
    """The skeleton with inferred value infos; what cannot be inferred stays unknown. NetworkError where it fails."""
    bare = skeleton(model)
    try:
        if bare.functions:
            bare = onnx.inliner.inline_local_functions(bare)
        return onnx.shape_inference.infer_shapes(bare, data_prop=True)
    except Exception as error:  # onnx raises several unrelated types, all of them about the file
        raise NetworkError(
            "the network", f"its shapes cannot be inferred: {error}", "check it with onnx.shape_inference"
        ) from error


def tensor_shapes(model: ModelProto) -> dict[str, TensorShape]:
    """Shape of every tensor of the main graph by name, weights included; see `infer` for errors."""
    graph = infer(model).graph
    shapes = {t.name: TensorShape(t.data_type, tuple(t.dims)) for t in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.HasField("tensor_type"):
            shapes[value.name] = shape_of(value)
    return shapes


def check_elements(inferred: ModelProto, limits: Limits = DEFAULT) -> None:
    """NetworkError where a tensor, or all together, would have too many elements; `inferred` comes from `infer`."""
    total = 0
    for value in _values(inferred.graph):
        shape = shape_of(value)
        if len(shape.dims or ()) > limits.rank:
            raise NetworkError(
                value.name, f"it has {len(shape.dims or ())} dimensions, {limits.rank} are allowed", "reshape it"
            )
        if any(isinstance(d, int) and d < 0 for d in shape.dims or ()):
            raise NetworkError(
                value.name,
                f"its shape {list(shape.dims or ())} has a negative dimension",
                "correct the operator that makes it",
            )
        if shape.elements > limits.tensor_elements:
            raise NetworkError(
                value.name,
                f"its shape {list(shape.dims or ())} has {shape.elements} elements, more than {limits.tensor_elements}",
                "use smaller shapes",
            )
        total += shape.elements
        if total > limits.total_elements:
            raise NetworkError(
                "the network",
                f"its tensors have more than {limits.total_elements} elements together",
                "use a smaller batch or network",
            )


def with_static_shapes(model: ModelProto, shapes: Mapping[str, Sequence[int]], limits: Limits = DEFAULT) -> ModelProto:
    """A copy of `model` whose inputs have the static `shapes`, by input name; static inputs may be left out.

    One symbol means one number everywhere. Raises NetworkError naming the input and dimension that is missing,
    contradicts the network or makes tensors too large.
    """
    fixed = ModelProto()
    fixed.CopyFrom(model)
    weights = {tensor.name for tensor in fixed.graph.initializer}
    inputs = {value.name: value for value in fixed.graph.input if value.name not in weights}
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise NetworkError(
            unknown[0], "the network has no input of this name", f"its inputs are {', '.join(inputs) or 'none'}"
        )
    symbols: dict[str, int] = {}
    for name, value in inputs.items():
        _fix(value, shapes.get(name), symbols)
    # What was declared for the dynamic network may contradict the static one: inference finds these again.
    del fixed.graph.value_info[:]
    for value in fixed.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in symbols:
                dim.dim_value = symbols[dim.dim_param]
    inferred = infer(fixed)
    check_elements(inferred, limits)
    found = {value.name: value for value in inferred.graph.output}
    for value in fixed.graph.output:
        value.type.CopyFrom(found[value.name].type)
    return fixed


def _fix(value: ValueInfoProto, wanted: Sequence[Dimension] | None, symbols: dict[str, int]) -> None:
    declared = shape_of(value).dims
    if wanted is None and declared is not None:
        wanted = [symbols.get(d, d) if isinstance(d, str) else d for d in declared]
    if wanted is None:
        raise NetworkError(value.name, "its shape is unknown", "give the shape of this input")
    if declared is not None and len(wanted) != len(declared):
        raise NetworkError(
            f"{value.name} {list(wanted)}", f"the network declares {len(declared)} dimensions", "give as many numbers"
        )
    for axis, size in enumerate(wanted):
        label = f"dimension {axis} of {value.name}"
        have = declared[axis] if declared is not None else None
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise NetworkError(
                f"{label} ({have or 'unnamed'})",
                f"it is dynamic and {size!r} is not a size",
                "give a whole number from 1",
            )
        expected = symbols.setdefault(have, size) if isinstance(have, str) else have
        if expected is not None and expected != size:
            raise NetworkError(f"{label} = {size}", f"the network has {expected} there", f"give {expected}")
    del value.type.tensor_type.shape.dim[:]
    for size in wanted:
        value.type.tensor_type.shape.dim.add(dim_value=size)
    if not wanted:
        value.type.tensor_type.shape.SetInParent()


def _large_constant(node: NodeProto) -> TensorProto | None:
    if node.op_type != "Constant" or len(node.output) != 1:
        return None
    for attribute in node.attribute:
        if attribute.name == "value" and prod(attribute.t.dims) > SMALL:
            return attribute.t
    return None


def _values(graph: GraphProto) -> Iterator[ValueInfoProto]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.HasField("tensor_type"):
            yield value
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _values(inner)
