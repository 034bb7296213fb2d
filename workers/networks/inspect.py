"""What a network is: inputs, outputs, operators, weights and work, as the page shows and the form asks for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

import onnx
from onnx import ModelProto, ValueInfoProto, helper

from workers.networks.errors import NetworkError, shown
from workers.networks.flops import flops_by_type
from workers.networks.graph import uses
from workers.networks.limits import DEFAULT
from workers.networks.precision import INTEGER_OPERATORS, check_types, precision
from workers.networks.shape import Dimension, TensorShape, shape_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

_WEIGHT_TYPES = frozenset({1, 10, 11, 16})
"""float32, float16, float64, bfloat16; quantized weights are counted by their operators."""
_QUANTIZED = INTEGER_OPERATORS | {"DequantizeLinear"}


@dataclass(frozen=True)
class Port:
    """One input or output. A dynamic dimension is its name, or None without one; `shape` is None without a rank."""

    name: str
    dtype: str
    shape: tuple[Dimension, ...] | None


@dataclass(frozen=True)
class DynamicDimension:
    """A size that a form must ask for. `symbol` ties dimensions that must be equal; None stands for itself."""

    input: str
    axis: int
    symbol: str | None


@dataclass(frozen=True)
class Inspection:
    """One network. `flops` counts convolutions and matrix products of one inference, dynamic dimensions as one; `work`
    is the same by operator type. `precision` says in which numbers it computes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    dynamic: tuple[DynamicDimension, ...]
    opset: int
    ir_version: int
    producer: str
    nodes: int
    operators: dict[str, int]
    parameters: int
    parameter_bytes: int
    work: dict[str, float]
    flops: float
    precision: str = "float32"

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries, lists, numbers and strings."""
        plain = asdict(self)
        for port in (*plain["inputs"], *plain["outputs"]):
            port["shape"] = None if port["shape"] is None else list(port["shape"])
        return {
            **plain,
            "inputs": list(plain["inputs"]),
            "outputs": list(plain["outputs"]),
            "dynamic": list(plain["dynamic"]),
        }


def inspect_model(model: ModelProto) -> Inspection:
    """Describes a network that was checked already; raises NetworkError for too many inputs, outputs and open sizes, and for
    numbers that cannot be computed with."""
    _check_ports(model)
    _check_sizes(model)
    shapes = tensor_shapes(model)
    check_types(model, shapes)
    inputs = tuple(_port(value) for value in real_inputs(model))
    dynamic = _dynamic(inputs)
    outputs = tuple(_port(value, shapes.get(value.name)) for value in model.graph.output)
    parameters, size = _parameters(model, shapes)
    work = flops_by_type(model, tensor_shapes(model, dynamic=1) if dynamic else shapes)
    return Inspection(
        inputs=inputs,
        outputs=outputs,
        dynamic=dynamic,
        opset=opset(model),
        ir_version=model.ir_version,
        producer=shown(f"{model.producer_name} {model.producer_version}".strip() or "unknown"),
        nodes=len(model.graph.node),
        operators=dict(Counter(node.op_type for node in model.graph.node).most_common()),
        parameters=parameters,
        parameter_bytes=size,
        work=work,
        flops=sum(work.values()),
        precision=precision(model),
    )


def _check_ports(model: ModelProto) -> None:
    ports = len(real_inputs(model)) + len(model.graph.output)
    if ports > DEFAULT.ports:
        raise NetworkError(
            ports,
            f"so many inputs and outputs; {DEFAULT.ports} is the limit",
            "export the network with fewer inputs and outputs",
        )


def _check_sizes(model: ModelProto) -> None:
    for value in real_inputs(model):
        dims = shape_of(value).dims or ()
        if 0 in dims:
            raise NetworkError(
                f"input {value.name} {list(dims)}",
                "it has a size of 0, so that there is nothing to compute with",
                "export the network without this input, or with another size",
            )


def real_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Graph inputs that are neither weights nor unused."""
    weights = {tensor.name for tensor in model.graph.initializer}
    read = uses(model)
    return [value for value in model.graph.input if value.name not in weights and value.name in read]


def _port(value: ValueInfoProto, inferred: TensorShape | None = None) -> Port:
    shape = inferred or shape_of(value)
    try:
        dtype = helper.tensor_dtype_to_np_dtype(shape.dtype).name
    except (KeyError, TypeError, ValueError) as error:
        raise NetworkError(value.name, "its element type is missing or unknown", "export the network again") from error
    return Port(value.name, dtype, shape.dims)


def _dynamic(inputs: tuple[Port, ...]) -> tuple[DynamicDimension, ...]:
    found = tuple(
        DynamicDimension(port.name, axis, dim if isinstance(dim, str) else None)
        for port in inputs
        for axis, dim in enumerate(port.shape or ())
        if not isinstance(dim, int)
    )
    if len(found) > DEFAULT.open_sizes:
        raise NetworkError(
            len(found),
            f"so many sizes of inputs are left open; {DEFAULT.open_sizes} is the limit",
            "export the network with fixed sizes where they do not change",
        )
    return found


def _parameters(model: ModelProto, shapes: dict[str, TensorShape]) -> tuple[int, int]:
    """Count and bytes of the weights, be they stored or made by operators from constants (a compact way to write)."""
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    quantized = {name for node in graph.node if node.op_type in _QUANTIZED for name in node.input}
    weights = {t.name: (int(t.data_type), prod(t.dims)) for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" or (node.op_type == "ConstantOfShape" and node.input[0] in constants):
            shape = shapes.get(node.output[0])
            if shape is not None and shape.static is not None:
                weights[node.output[0]] = (shape.dtype, shape.elements)
    counted = [(dtype, n) for name, (dtype, n) in weights.items() if dtype in _WEIGHT_TYPES or name in quantized]
    size = sum(n * onnx.helper.tensor_dtype_to_np_dtype(dtype).itemsize for dtype, n in counted)
    return sum(n for _, n in counted), size
