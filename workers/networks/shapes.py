"""Static shapes for a network's inputs, and the shapes of all its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, inliner

from workers.networks.errors import NetworkError
from workers.networks.inference import Inference
from workers.networks.limits import DEFAULT, WRITTEN, Limits
from workers.networks.shape import SMALL, Dimension, TensorShape, shape_of


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
            graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))

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


def tensor_shapes(model: ModelProto, limits: Limits = WRITTEN, dynamic: int | None = None) -> dict[str, TensorShape]:
    """Shape of every tensor of the main graph by name, weights included; what cannot be inferred is left out.

    `dynamic` stands for every dynamic dimension of the inputs. Raises NetworkError where a tensor, or all together,
    would have more elements than `limits` allow.
    """
    bare = skeleton(model)
    if bare.functions:
        try:
            bare = inliner.inline_local_functions(bare)
        except Exception as error:  # from the C++ inside
            raise NetworkError(
                "local functions", f"they cannot be written out: {error}", "export without them"
            ) from error
    if dynamic is not None:
        for value in bare.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if not dim.HasField("dim_value"):
                    dim.dim_value = dynamic
    return Inference(bare, limits).run()


def set_static_shapes(model: ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Gives the inputs of `model` the static `shapes`, by input name; static inputs may be left out.

    One symbol means one number everywhere. Raises NetworkError naming the input and dimension that is missing,
    contradicts the network or makes tensors too large.
    """
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value for value in model.graph.input if value.name not in weights}
    unknown = sorted(set(shapes) - set(inputs))
    if unknown:
        raise NetworkError(
            unknown[0], "the network has no input of this name", f"its inputs are {', '.join(inputs) or 'none'}"
        )
    symbols: dict[str, int] = {}
    for name, value in inputs.items():
        _fix(value, shapes.get(name), symbols)
    # What was declared for the dynamic network may contradict the static one: inference finds these again.
    del model.graph.value_info[:]
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in symbols:
                dim.dim_value = symbols[dim.dim_param]
    set_output_shapes(model, DEFAULT)


def set_output_shapes(model: ModelProto, limits: Limits = WRITTEN) -> None:
    """Gives the outputs the shapes that are inferred, where they are."""
    found = tensor_shapes(model, limits)
    for value in model.graph.output:
        shape = found.get(value.name, shape_of(value))
        value.type.CopyFrom(helper.make_tensor_type_proto(shape.dtype, shape.dims))


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
