"""Convolutions whose kernel lies in the padding for the most part, as those of atrous pyramids (Chen et al. 2017, section 3.3):
at rate 12 eight of nine taps read two of a feature map's 14 rows or columns, if that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from workers.networks.graph import Array, Parts, Weights, attribute, rewrite, set_attributes, told
from workers.networks.opsets import OLDEST
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset
from workers.networks.window import window

MOST = 0.7
"""Of a kernel's products with numbers that are there, among all: with fewer each tap is a product of its own."""
TAPS = 32
"""Most of them that are written out."""


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
    if opset(model) < OLDEST or not any(map(_padded, model.graph.node)):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def within(node: NodeProto) -> list[NodeProto]:
        found = window(node, weights, shapes) if _padded(node) else None
        if found is None:
            return []
        each = (found.sizes, found.kernel, found.strides, found.rates, found.before, found.behind)
        axes = [_Axis(*one) for one in zip(*each, strict=True)]
        cut = [axis.cut() for axis in axes]
        left = [axis for axis, _ in cut]
        split = _split(node, left, weights)
        if not split and [axis.taps for axis in left] == found.kernel:
            return []
        values = weights.get(node.input[1])[(slice(None), slice(None), *(taps for _, taps in cut))]
        return (_by_tap if split else _cut)(node, left, values, weights)

    written = rewrite(model.graph, within)
    return told(written, "convolution was kept out of its padding", "convolutions were kept out of their padding")


def _padded(node: NodeProto) -> bool:
    return node.op_type == "Conv" and any(attribute(node, "pads", []))


def _split(node: NodeProto, axes: Sequence[_Axis], weights: Weights) -> bool:
    """Where a kernel of TAPS at most has a rate, and MOST of its products at most are with numbers that are there. Not with
    groups, nor where one product of whole numbers is several times as fast."""
    if attribute(node, "group", 1) != 1 or all(axis.rate == 1 or axis.taps == 1 for axis in axes):
        return False
    taps = prod(axis.taps for axis in axes)
    reached = prod(sum(len(axis.reached(tap)) for tap in range(axis.taps)) for axis in axes) if taps <= TAPS else 0
    if not 0 < reached <= MOST * taps * prod(axis.kept for axis in axes):
        return False
    values, tensor = weights.get(node.input[1]), weights.tensor(node.input[1])
    return tensor is not None and tensor.data_type == TensorProto.FLOAT and not np.array_equal(values, np.rint(values))


def _cut(node: NodeProto, axes: Sequence[_Axis], values: Array, weights: Weights) -> list[NodeProto]:
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[1] = weights.put(f"{node.output[0]}__within", values)
    pads = [*(axis.before for axis in axes), *(axis.behind for axis in axes)]
    set_attributes(copy, kernel_shape=[axis.taps for axis in axes], pads=pads)
    return [copy]


def _by_tap(node: NodeProto, axes: Sequence[_Axis], values: Array, weights: Weights) -> list[NodeProto]:
    source, _, *bias = (name for name in node.input if name)
    parts, total = Parts(node.output[0], weights), ""
    along = parts.numbers("axes", range(2, 2 + len(axes)))
    steps = parts.numbers("steps", [axis.stride for axis in axes])
    for place in product(*(range(axis.taps) for axis in axes)):
        each = [(axis, tap, axis.reached(tap)) for axis, tap in zip(axes, place, strict=True)]
        if not all(outputs for _, _, outputs in each):
            continue
        name = "_".join(map(str, place))
        starts, ends = (
            [axis.stride * outputs[end] + axis.rate * tap - axis.before for axis, tap, outputs in each]
            for end in (0, -1)
        )
        read = source
        if starts != [0] * len(axes) or ends != [axis.size - 1 for axis in axes] or any(a.stride > 1 for a in axes):
            bounds = (starts, [end + 1 for end in ends])
            words = (f"starts_{name}", f"ends_{name}")
            given = [parts.numbers(word, values) for word, values in zip(words, bounds, strict=True)]
            read = parts.add("Slice", f"read_{name}", source, *given, along, steps)
        kernel = values[(slice(None), slice(None), *(slice(tap, tap + 1) for tap in place))]
        part = parts.add("Conv", f"tap_{name}", read, parts.constant(f"kernel_{name}", kernel))
        before = [0, 0, *(outputs[0] for _, _, outputs in each)]
        behind = [0, 0, *(axis.kept - 1 - outputs[-1] for axis, _, outputs in each)]
        if any(before + behind):
            part = parts.add("Pad", f"placed_{name}", part, parts.numbers(f"pads_{name}", before + behind))
        total = parts.add("Add", f"sum_{name}", total, part) if total else part
    for name in bias:
        shift = weights.get(name).reshape(1, -1, *[1] * len(axes))
        parts.add("Add", "shifted", total, parts.constant("bias", shift))
    return parts.all()
