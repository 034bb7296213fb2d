"""How exactly a network's outputs can be expected again, by the numbers it computes in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from workers.networks.graph import Array
from workers.networks.precision import INTEGER_OPERATORS, precision

_HANDING_ON = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})
_INTEGERS = frozenset({TensorProto.INT8, TensorProto.UINT8})
LARGEST = 1 << 16
"""Elements of a scale: one a channel at most."""


@dataclass(frozen=True)
class Tolerance:
    """`relative`: how far an element may be off, as a share of the reference's largest absolute value.

    An output that was quantised last has a `step` instead: an element may be `steps` of them off, and a `share` of the
    elements may be off at all. `reason` says why differences arise.
    """

    relative: float
    reason: str
    step: float = 0.0
    steps: int = 0
    share: float = 0.0

    def __str__(self) -> str:
        if self.step:
            return f"{self.steps} quantisation steps of {self.step:.3g}, in {100 * self.share:g} % of it"
        return f"{100 * self.relative:.2g} % of the largest value"


SINGLE = Tolerance(1e-3, "kernels add in another order than the reference does")
HALF = Tolerance(
    20 * 2.0**-11,
    "the reference may round to float16, by up to 2^-11 of a value, behind every operator: over a hundred of them such "
    "errors add up to some ten roundings, and twice that is allowed",
)
STEPS, SHARE = 3, 0.4
"""Integer sums are exact, but where scaled numbers are added (a residual, an average) two orders of rounding part ways by
a step, and operators behind them pass that on: of ResNet-18's outputs 25 % differ by a step between ONNX Runtime with and
without its fusions, and 22 to 28 % by one or two between it and this product. Normal errors that take 40 % of the elements
to the next step take one in a thousand three steps away."""
TIES = "a number halfway between two quantisation steps may be rounded to either, and what follows passes the step on"
QUANTISED = Tolerance(STEPS / 255, f"{TIES}; behind the last quantisation, {STEPS} steps of an 8-bit range are allowed")


def tolerances(model: ModelProto) -> dict[str, Tolerance]:
    """By output of a checked network as it was uploaded."""
    numbers = precision(model)
    if not numbers.startswith("quantised"):
        return {value.name: HALF if numbers == "float16" else SINGLE for value in model.graph.output}
    constants = dict(_constants(model))
    makers = {name: node for node in model.graph.node for name in node.output}
    return {value.name: _quantised(value, makers, constants) for value in model.graph.output}


def _quantised(value: ValueInfoProto, makers: dict[str, NodeProto], constants: dict[str, Array]) -> Tolerance:
    if value.type.tensor_type.elem_type in _INTEGERS:
        return Tolerance(0.0, TIES, 1.0, STEPS, SHARE)
    name = _source(value.name, makers)
    behind = makers.get(name)
    if behind is not None and behind.op_type == "Softmax":
        step = _step(_source(behind.input[0], makers), makers, constants)
        # The steps allowed in an exponent, and one in all the others.
        relative = max(QUANTISED.relative, math.expm1((STEPS + 1) * (step or 0.0)))
        return Tolerance(relative, f"{TIES}; Softmax takes a step of {step or 0:.2g} to that share of a probability")
    step = _step(name, makers, constants)
    return QUANTISED if step is None else Tolerance(0.0, TIES, step, STEPS, SHARE)


def _source(name: str, makers: dict[str, NodeProto]) -> str:
    """The tensor whose values those of `name` are."""
    while name in makers and makers[name].op_type in _HANDING_ON:
        name = makers[name].input[0]
    return name


def _step(name: str, makers: dict[str, NodeProto], constants: dict[str, Array]) -> float | None:
    """Between the numbers that a tensor may hold; None where it does not come from a quantisation."""
    node = makers.get(name)
    if node is None or node.op_type != "DequantizeLinear" or node.input[1] not in constants:
        return None
    source = makers.get(_source(node.input[0], makers))
    if source is not None and source.op_type not in {"QuantizeLinear", *INTEGER_OPERATORS}:
        return None
    return float(np.max(constants[node.input[1]]))


def _constants(model: ModelProto) -> Iterator[tuple[str, Array]]:
    """Those small enough to be scales."""
    stored = [(tensor.name, tensor) for tensor in model.graph.initializer]
    stored += [
        (n.output[0], a.t) for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.HasField("t")
    ]
    for name, tensor in stored:
        if math.prod(tensor.dims) <= LARGEST:
            yield name, np.asarray(numpy_helper.to_array(tensor))
