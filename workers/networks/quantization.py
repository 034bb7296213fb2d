"""Quantised networks as arithmetic on float32: integers stay integers, scales move behind the operators they pass.

A dequantised tensor is integers times a scale. A convolution or product of two such tensors is an integer sum times the
product of their scales, and the quantisation behind it one multiplication, rounding and clipping. float32 holds integers
exactly up to 2**24, so sums up to there do not depend on the order in which they are added, and what is rounded is what
ONNX Runtime's integer kernels round: differences of one step do not arise, and cannot grow from operator to operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, OperatorSetIdProto, TensorProto, helper

from workers.networks.errors import NetworkError
from workers.networks.folding import fold_constants
from workers.networks.graph import (
    HANDING_ON,
    Array,
    attribute,
    called,
    read_by,
    replace_nodes,
    set_attributes,
    uses,
)
from workers.networks.inference import evaluate
from workers.networks.integers import IntegerTensors, Scaled, Stored
from workers.networks.precision import PAIRS
from workers.networks.quantized_operators import SUMS, operators_to_pairs
from workers.networks.structure import STANDARD

_RANGES = {
    TensorProto.UINT8: (0, 255),
    TensorProto.INT8: (-128, 127),
    TensorProto.UINT16: (0, 65535),
    TensorProto.INT16: (-32768, 32767),
}
_MOVING = HANDING_ON | {"MaxPool"}
"""Operators that hand on some of the values they read, or all."""
_LARGEST = frozenset({"Relu", "MaxPool"})
"""By a scale below zero these would take the least."""
REACH = 2.0**30
"""Steps: far beyond all that is stored in 8 or 16 bits, and within 32."""
_BLOCKS = 21
"""Operator set from which on ONNX has scales of blocks."""
_AVERAGING = frozenset({"AveragePool", "GlobalAveragePool"})


def quantization_to_arithmetic(model: ModelProto) -> str | None:
    """Writes out QuantizeLinear, DequantizeLinear and the operators on integers, wherever their scales are constant."""
    sentence = operators_to_pairs(model)
    if not any(node.op_type in PAIRS for node in model.graph.node):
        return sentence
    tensors = IntegerTensors(model)
    rules = _Rules(tensors, list(model.opset_import), _clips(model))
    for node in model.graph.node:
        rules.write(node)
    for value in model.graph.output:
        tensors.real(value.name)
    replace_nodes(model.graph, tensors.nodes)
    fold_constants(model)  # what was computed of dequantised weights, as gates are put into another order
    return "quantised integers were written as float32 numbers"


class _Rules:
    """What becomes of each operator, one after the other. A rule says whether it took the operator."""

    def __init__(
        self, tensors: IntegerTensors, opsets: list[OperatorSetIdProto], clips: Mapping[str, NodeProto]
    ) -> None:
        self._tensors, self._opsets, self._clips = tensors, opsets, clips
        self._weights, self._scaled, self._stored = tensors.weights, tensors.scaled, tensors.stored
        self._rules: dict[str, Callable[[NodeProto], bool]] = {
            "DequantizeLinear": self._dequantize,
            "QuantizeLinear": self._quantize,
            "Conv": self._convolution,
            "Gemm": self._gemm,
            "MatMul": self._product,
            "Cast": self._cast,
            "Concat": self._concatenate,
            "Clip": self._clip,
            **dict.fromkeys((*_MOVING, *_AVERAGING, "Relu"), self._passing),
        }

    def write(self, node: NodeProto) -> None:
        """Takes the next operator of the network."""
        if node.op_type in PAIRS:
            for name in filter(None, node.input[1:]):
                self._tensors.real(name)  # scales may be quantised themselves
            if attribute(node, "block_size", 0) and any(name and name not in self._weights for name in node.input):
                reason = "it has scales of blocks, of a tensor that is computed, or that are computed"
                raise NetworkError(called(node), reason, "quantise it with one scale")
        # com.microsoft has the pairs too, for integers of 16 bits in older operator sets.
        standard = node.domain in STANDARD or node.op_type in PAIRS
        rule = self._rules.get(node.op_type) if standard else None
        if rule is not None and rule(node):
            return
        for name in read_by(node):
            self._tensors.real(name)
        self._tensors.nodes.append(node)

    def _dequantize(self, node: NodeProto) -> bool:
        source, scale, zero = [*node.input, ""][:3]
        out = node.output[0]
        constant = scale in self._weights and (not zero or zero in self._weights)
        if source in self._weights and constant and attribute(node, "block_size", 0):
            return self._evaluated(node)
        zeros = self._tensors.along(zero, node) if zero in self._weights else np.zeros((), np.float32)
        if source in self._weights and constant:
            integers = self._tensors.constant(f"{out}__integers", self._weights.get(source).astype(np.float32) - zeros)
            self._scaled[out] = Scaled(integers, self._tensors.along(scale, node))
            return True
        known = self._stored.get(source)
        if known is not None and constant and np.array_equal(known.zero, zeros):
            integers, span = known.integers, known.span
        else:
            stored = self._weights.tensor(zero) if zero else None
            integers = self._centred(node, source, zero, zeros)
            span = _span(_RANGES[stored.data_type], zeros) if stored and stored.data_type in _RANGES else None
        if scale in self._weights:
            self._scaled[out] = Scaled(integers, self._tensors.along(scale, node), span)
        else:
            self._tensors.emit("Mul", [integers, self._tensors.across(scale, node)], out)
        return True

    def _centred(self, node: NodeProto, source: str, zero: str, zeros: Array) -> str:
        """Stored integers that come from elsewhere as float32 numbers, less their zero, which may be found at run time."""
        self._tensors.real(source)
        out = node.output[0]
        real = self._tensors.emit("Cast", [source], f"{out}__stored", to=TensorProto.FLOAT)
        if not zero or zero in self._weights:
            return self._tensors.shifted(real, -zeros, f"{out}__integers")
        shift = self._tensors.emit("Cast", [self._tensors.across(zero, node)], f"{out}__zero", to=TensorProto.FLOAT)
        return self._tensors.emit("Sub", [real, shift], f"{out}__integers")

    def _quantize(self, node: NodeProto) -> bool:
        source, scale, zero = [*node.input, ""][:3]
        out = node.output[0]
        if source in self._weights and self._evaluated(node, self._within_reach(node, scale)):
            return True
        dtype = self._stored_type(node, zero)
        if scale not in self._weights or (zero and zero not in self._weights) or dtype not in _RANGES:
            return False
        step = self._tensors.along(scale, node)
        zeros = self._tensors.along(zero, node) if zero else np.zeros((), np.float32)
        # One rounding and one clipping, though training for 7 bits writes two.
        ends = self._within(self._clips.get(out), _RANGES[dtype]) or _RANGES[dtype]
        joined = self._tensors.joined.get(source) if step.size == zeros.size == 1 else None
        if joined is None:
            integers, span = self._in_steps(source, out, step, zeros, ends)
        else:
            # Each part by itself: what is concatenated then has the stored integers' 8 bits.
            parts = [
                self._in_steps(part, f"{out}__{place}", step, zeros, ends) for place, part in enumerate(joined.input)
            ]
            integers, span = f"{out}__integers", _span(ends, zeros)
            self._tensors.rewire(joined, [part for part, _ in parts], integers)
        self._stored[out] = Stored(integers, zeros, dtype, span)
        return True

    def _in_steps(
        self, source: str, out: str, step: Array, zeros: Array, ends: tuple[int, int]
    ) -> tuple[str, tuple[float, float] | None]:
        """The tensor `source` in steps within `ends`, less the zero; and its span."""
        (low, high), span = ends, _span(ends, zeros)
        known = self._scaled.get(source)
        again = _quantised_again(known, step) if known is not None else None
        if known is None or again is None:
            self._tensors.real(source)
            value = self._tensors.emit("Div", [source, self._tensors.constant(f"{out}__step", step)], f"{out}__steps")
        else:
            value = self._times(known.integers, again.factor, out)
            if again.span and span and span[0] <= again.span[0] and again.span[1] <= span[1]:
                if value != known.integers:
                    value = self._tensors.emit("Round", [value], f"{out}__integers")
                return value, again.span
        return self._tensors.rounded(value, low - zeros, float(high - low), out), span

    def _clip(self, node: NodeProto) -> bool:
        """Of what was stored within its bounds already, or of a constant."""
        if node.input[0] in self._weights:
            return self._evaluated(node)
        kept = self._stored.get(node.input[0])
        if kept is None or kept.span is None or kept.dtype not in _RANGES:
            return False
        ends = self._within(node, _RANGES[kept.dtype])
        span = _span(ends, kept.zero) if ends else None
        if span is None or kept.span[0] < span[0] or span[1] < kept.span[1]:
            return False
        self._stored[node.output[0]] = kept
        return True

    def _within(self, clip: NodeProto | None, ends: tuple[int, int]) -> tuple[int, int] | None:
        """What a Clip leaves of the `ends` of a type; None where its bounds are computed or leave nothing."""
        bounds = [*clip.input[1:], "", ""][:2] if clip else ["", ""]
        if any(name and name not in self._weights for name in bounds):
            return None
        low, high = (
            int(self._weights.get(name).item()) if name else end for name, end in zip(bounds, ends, strict=True)
        )
        low, high = max(low, ends[0]), min(high, ends[1])
        return (low, high) if low <= high else None

    def _times(self, integers: str, factor: Array, out: str) -> str:
        if np.all(factor == 1):
            return integers
        return self._tensors.emit("Mul", [integers, self._tensors.constant(f"{out}__factor", factor)], f"{out}__steps")

    def _concatenate(self, node: NodeProto) -> bool:
        """Taken, and written once it is known what reads it: a quantisation wants the parts by themselves."""
        parts = [self._scaled.get(name) for name in node.input]
        if any(part is None or part.scale.size > 1 or part.integers in self._weights for part in parts):
            return False
        self._tensors.joined[node.output[0]] = node
        return True

    def _cast(self, node: NodeProto) -> bool:
        """The int32 sums of an integer operator on their way to real numbers."""
        source, out, to = node.input[0], node.output[0], attribute(node, "to")
        known, kept = self._scaled.get(source), self._stored.get(source)
        if known is not None and to == TensorProto.INT32 and source.endswith(SUMS) and np.all(known.scale == 1):
            self._stored[out] = Stored(known.integers, np.zeros((), np.float32), to, known.span)
            return True
        if kept is not None and to == TensorProto.FLOAT and not np.any(kept.zero):
            self._scaled[out] = Scaled(kept.integers, np.ones((), np.float32), kept.span)
            return True
        return False

    def _convolution(self, node: NodeProto) -> bool:
        return self._linear(node, 0, 1)

    def _gemm(self, node: NodeProto) -> bool:
        plain = attribute(node, "alpha", 1.0) == attribute(node, "beta", 1.0) == 1.0 and not attribute(
            node, "transA", 0
        )
        return plain and self._linear(node, 0 if attribute(node, "transB", 0) else 1, 1)

    def _product(self, node: NodeProto) -> bool:
        right = self._scaled.get(node.input[1])
        return right is not None and (right.scale.size == 1 or right.scale.ndim == 2) and self._linear(node, 1, 1)

    def _linear(self, node: NodeProto, axis: int, channel: int) -> bool:
        """The sum of integers in place of the sum of reals; scales a channel run along `axis` of the second factor and
        along `channel` of the result."""
        left, right = (self._scaled.get(name) for name in node.input[:2])
        if left is None or right is None or left.scale.size != 1:
            return False
        if right.scale.size > 1 and (right.scale.ndim <= axis or right.scale.shape[axis] != right.scale.size):
            return False
        scale = (left.scale * right.scale.reshape(-1)).astype(np.float32)
        bias = self._bias(node.input[2], scale) if len(node.input) > 2 and node.input[2] else ()
        if bias is None:
            return False
        out = f"{node.output[0]}__integers"
        self._tensors.rewire(node, [left.integers, right.integers, *bias], out)
        # A product's columns are its last axis, and of a vector the result has no other.
        places = (channel,) if node.op_type == "MatMul" else range(right.scale.ndim)
        shape = [-1 if place == channel else 1 for place in places] if scale.size > 1 else []
        self._scaled[node.output[0]] = Scaled(out, scale.reshape(shape))
        return True

    def _bias(self, name: str, scale: Array) -> tuple[str] | None:
        """A constant bias in units of the sum: the stored integers where they have its scale. No unit of 0 makes one up."""
        known = self._scaled.get(name)
        if known is not None and known.integers in self._weights:
            by_columns = known.scale.size in (1, *known.scale.shape[-1:])
            if by_columns and np.allclose(known.scale.reshape(-1), scale, rtol=1e-5, atol=0):
                return (known.integers,)
            real = self._weights.get(known.integers) * known.scale
        elif name in self._weights:
            real = self._weights.get(name)
        else:
            return None
        scale = scale if scale.size > 1 else scale.reshape(())
        if np.any((scale == 0) & (real != 0)):
            return None
        units = real.astype(np.float64) / np.where(scale == 0, 1, scale)
        return (self._tensors.constant(f"{name}__units", units),)

    def _passing(self, node: NodeProto) -> bool:
        """An operator that commutes with a scale: it is done on the integers."""
        source, out = node.input[0], f"{node.output[0]}__integers"
        known, kept = self._scaled.get(source), self._stored.get(source)
        if len([name for name in node.output if name]) > 1:
            return False
        if known is not None and known.integers in self._weights:
            return self._moved(node, known)
        if known is not None:
            if (known.scale.size > 1 and node.op_type != "Relu") or (
                np.any(known.scale < 0) and node.op_type in _LARGEST
            ):
                return False
            span = known.span if node.op_type in _MOVING else None
            if node.op_type == "Relu" and known.span:
                span = (0.0, max(0.0, known.span[1]))
            self._tensors.rewire(node, [known.integers, *node.input[1:]], out)
            self._scaled[node.output[0]] = replace(known, integers=out, span=span)
            return True
        if kept is not None and kept.zero.size == 1 and node.op_type in _MOVING:
            self._tensors.rewire(node, [kept.integers, *node.input[1:]], out)
            self._stored[node.output[0]] = replace(kept, integers=out)
            return True
        return False

    def _moved(self, node: NodeProto, known: Scaled) -> bool:
        """A constant's integers in another order or form, as exporters transpose the weights that a layer multiplies by; scales
        a channel go along."""
        integers, scale = self._weights.get(known.integers), known.scale
        if node.op_type not in HANDING_ON:
            return False
        if scale.size > 1 and (node.op_type != "Transpose" or scale.ndim != integers.ndim):
            return False
        moved, along = self._value(node, integers), self._value(node, scale) if scale.size > 1 else scale
        if moved is None or along is None:
            return False
        name = self._tensors.constant(f"{node.output[0]}__integers", moved)
        self._scaled[node.output[0]] = replace(known, integers=name, scale=along)
        return True

    def _within_reach(self, node: NodeProto, scale: str) -> Array:
        """A constant that is to be quantised, but for what the reference implementation, which counts steps in 32 bits, takes
        for a number of the other sign: a mask of float32's lowest number."""
        values = self._weights.get(node.input[0])
        if scale not in self._weights or attribute(node, "block_size", 0):
            return values
        most = REACH * np.abs(self._tensors.along(scale, node))
        return np.clip(values, -most, most).astype(values.dtype)

    def _evaluated(self, node: NodeProto, first: Array | None = None) -> bool:
        """The result of an operator on constants, of `first` where that is given, as a constant, where the reference
        implementation knows it."""
        value = self._value(node, self._weights.get(node.input[0]) if first is None else first)
        if value is None:
            return False
        self._weights.put(node.output[0], value)
        return True

    def _value(self, node: NodeProto, first: Array) -> Array | None:
        """What an operator makes of `first` in place of its first input, where the others are constant."""
        others = [name for name in node.input[1:] if name]
        if any(name not in self._weights for name in others):
            return None
        values = {**{name: self._weights.get(name) for name in others}, node.input[0]: first}
        standard, opsets = NodeProto(), self._opsets
        standard.CopyFrom(node)
        if node.domain not in STANDARD:  # com.microsoft's pair is ONNX's of a later operator set
            standard.domain, opsets = "", [helper.make_opsetid("", _BLOCKS)]
            set_attributes(standard, accuracy_level=None)  # of the product behind it
        found = evaluate(standard, values, opsets)
        return None if found is None else found[0]

    def _stored_type(self, node: NodeProto, zero: str) -> int:
        tensor = self._weights.tensor(zero) if zero else None
        if tensor is not None:
            return int(tensor.data_type)
        return int(attribute(node, "output_dtype", 0)) or int(TensorProto.UINT8)


class _Again(NamedTuple):
    """Integers times `factor` and rounded, which lie within `span` then, where that is known."""

    factor: Array
    span: tuple[float, float] | None


def _quantised_again(known: Scaled, step: Array) -> _Again | None:
    """What quantises scaled integers as ONNX Runtime does. Sums take the quotient of scale and step. What is stored takes the
    scale, and is over the step, each rounded to float32: that quotient is now and then a bit off, and one beside it may do."""
    factor = (known.scale / step).astype(np.float32)
    if known.span is None:
        return _Again(factor, None)
    if factor.size > 1:
        return None
    factor = factor.reshape(())
    integers = np.arange(known.span[0], known.span[1] + 1, dtype=np.float32)
    wanted = np.rint((integers * known.scale.reshape(())) / step.reshape(()))
    for one in (factor, np.nextafter(factor, np.float32(0)), np.nextafter(factor, np.float32(np.inf))):
        if np.array_equal(np.rint(integers * one), wanted):
            return _Again(np.asarray(one), (float(wanted.min()), float(wanted.max())))
    return None


def _clips(model: ModelProto) -> dict[str, NodeProto]:
    """Those that alone read what they clip, by its name."""
    readers = uses(model)
    clips = (node for node in model.graph.node if node.op_type == "Clip")
    return {node.input[0]: node for node in clips if readers[node.input[0]] == 1}


def _span(ends: tuple[int, int], zeros: Array) -> tuple[float, float] | None:
    low, high = ends
    return (float(low - zeros), float(high - zeros)) if zeros.size == 1 else None
