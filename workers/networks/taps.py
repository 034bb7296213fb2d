"""Convolutions whose kernel lies in the padding for the most part, as those of atrous pyramids (Chen et al. 2017, section 3.3):
at rate 12 eight of nine taps read four of a feature map's 14 rows or columns, if that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Array, Weights, attribute, has_convolutions, rewrite, set_attributes, told
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes

MOST = 0.7
"""Of a kernel's products with numbers that are there, among all: with fewer each tap is a product of its own."""


@dataclass(frozen=True)
class _Axis:
    """Tap t of `taps` adds x[`stride` o + `rate` t - `before`] to y[o], of `size` numbers and `kept` ones."""

    size: int
    taps: int
    stride: int
    rate: int
    before: int
    behind: int

    @property
    def kept(self) -> int:
        return (self.size + self.before + self.behind - (self.taps - 1) * self.rate - 1) // self.stride + 1

    def reached(self, tap: int) -> range:
        """The outputs to which a tap adds what is no padding."""
        first, last = self.before - tap * self.rate, self.size - 1 + self.before - tap * self.rate
        return range(max(0, -(-first // self.stride)), min(self.kept - 1, last // self.stride) + 1)

    def cut(self) -> tuple[_Axis, slice]:
        """The same without the taps at its ends that read padding alone, and which are left."""
        reaching = [tap for tap in range(self.taps) if self.reached(tap)]
        if not reaching:
            return self, slice(self.taps)
        first, last = reaching[0], reaching[-1]
        before = self.before - first * self.rate
        behind = (self.kept - 1) * self.stride + (last - first) * self.rate + 1 - self.size - before
        if before < 0 or behind < 0:
            return self, slice(self.taps)
        return _Axis(self.size, last - first + 1, self.stride, self.rate, before, behind), slice(first, last + 1)


def taps_within(model: ModelProto) -> str | None:
    """Taps that read nothing but padding go, and where most of the others do for most outputs, each is a product of its own."""
    if not has_convolutions(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def within(node: NodeProto) -> list[NodeProto]:
        axes = _axes(node, weights, shapes) if node.op_type == "Conv" else None
        if axes is None or all(axis.taps == 1 for axis in axes):
            return []
        cut = [axis.cut() for axis in axes]
        left = [axis for axis, _ in cut]
        if not _split(node, left, weights):
            fewer = [axis.taps for axis in left] != [axis.taps for axis in axes]
            return _cut(node, left, [taps for _, taps in cut], weights) if fewer else []
        values = weights.get(node.input[1])[(slice(None), slice(None), *(taps for _, taps in cut))]
        return _by_tap(node, left, values, weights)

    written = rewrite(model.graph, within)
    return told(written, "convolution was kept out of its padding", "convolutions were kept out of their padding")


def _axes(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> list[_Axis] | None:
    shape = shapes.get(node.input[0])
    known = shape is not None and shape.static and node.input[1] in weights
    if not known or attribute(node, "auto_pad", b"NOTSET") != b"NOTSET":
        return None
    sizes, kernel = shape.static[2:], weights.shape(node.input[1])[2:]  # type: ignore[union-attr, index]
    ones = [1] * len(sizes)
    strides, rates = attribute(node, "strides", ones), attribute(node, "dilations", ones)
    pads = attribute(node, "pads", [0] * 2 * len(sizes))
    each = zip(sizes, kernel, strides, rates, pads[: len(sizes)], pads[len(sizes) :], strict=True)
    return [_Axis(*one) for one in each]


def _split(node: NodeProto, axes: Sequence[_Axis], weights: Weights) -> bool:
    """Not with groups, nor where one product of whole numbers is several times as fast."""
    if attribute(node, "group", 1) != 1 or all(axis.rate == 1 or axis.taps == 1 for axis in axes):
        return False
    reached = prod(sum(len(axis.reached(tap)) for tap in range(axis.taps)) for axis in axes)
    if reached > MOST * prod(axis.taps * axis.kept for axis in axes):
        return False
    values, tensor = weights.get(node.input[1]), weights.tensor(node.input[1])
    return tensor is not None and tensor.data_type == TensorProto.FLOAT and not np.array_equal(values, np.rint(values))


def _cut(node: NodeProto, axes: Sequence[_Axis], taps: Sequence[slice], weights: Weights) -> list[NodeProto]:
    copy = NodeProto()
    copy.CopyFrom(node)
    values = weights.get(node.input[1])[(slice(None), slice(None), *taps)]
    copy.input[1] = weights.put(f"{node.output[0]}__within", values)
    pads = [*(axis.before for axis in axes), *(axis.behind for axis in axes)]
    set_attributes(copy, kernel_shape=[axis.taps for axis in axes], pads=pads)
    return [copy]


def _by_tap(node: NodeProto, axes: Sequence[_Axis], values: Array, weights: Weights) -> list[NodeProto]:
    source, _, *bias = (name for name in node.input if name)
    result, made, parts = node.output[0], list[NodeProto](), list[str]()

    def add(kind: str, part: str, inputs: Sequence[str], **attributes: object) -> str:
        made.append(helper.make_node(kind, [*inputs], [f"{result}__{part}"], **attributes))
        return f"{result}__{part}"

    def numbers(word: str, of: Sequence[int]) -> str:
        return weights.put(f"{result}__{word}", np.asarray(of, np.int64))

    along = numbers("axes", range(2, 2 + len(axes)))
    steps = numbers("steps", [axis.stride for axis in axes])
    for place in product(*(range(axis.taps) for axis in axes)):
        reached = [axis.reached(tap) for axis, tap in zip(axes, place, strict=True)]
        if not all(reached):
            continue
        name = "_".join(map(str, place))
        read, starts, ends = source, list[int](), list[int]()
        for axis, tap, outputs in zip(axes, place, reached, strict=True):
            starts.append(axis.stride * outputs[0] + axis.rate * tap - axis.before)
            ends.append(axis.stride * outputs[-1] + axis.rate * tap - axis.before + 1)
        if any(end - start < axis.size for axis, start, end in zip(axes, starts, ends, strict=True)):
            bounds = [numbers(f"starts_{name}", starts), numbers(f"ends_{name}", ends), along, steps]
            read = add("Slice", f"read_{name}", [source, *bounds])
        kernel = values[(slice(None), slice(None), *(slice(tap, tap + 1) for tap in place))]
        part = add("Conv", f"tap_{name}", [read, weights.put(f"{result}__kernel_{name}", kernel)])
        before = [0, 0, *(outputs[0] for outputs in reached)]
        behind = [0, 0, *(axis.kept - 1 - outputs[-1] for axis, outputs in zip(axes, reached, strict=True))]
        if any(before + behind):
            part = add("Pad", f"placed_{name}", [part, numbers(f"pads_{name}", before + behind)])
        parts.append(part)
    total = parts[0]
    for number, part in enumerate(parts[1:]):
        total = add("Add", f"sum_{number}", [total, part])
    for name in bias:
        shift = weights.get(name).reshape(1, -1, *[1] * len(axes))
        add("Add", "shifted", [total, weights.put(f"{result}__bias", shift)])
    made[-1].output[0] = result
    return made
