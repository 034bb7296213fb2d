"""Transposed convolutions as convolutions whose channels are the pixels between those that they read.

Of the numbers between which TVM's program puts zeros, stride 2 leaves a fourth: it multiplies all of them. Here what lies at
one place between two pixels (Shi et al. 2016, section 3.2) is a convolution of pixels that are next to each other, the places
are its channels, and a transposition puts these beside each other: with the channels last, whole rows of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.graph import (
    Array,
    Parts,
    Weights,
    attribute,
    channels_last,
    channels_second,
    operator_types,
    rewrite,
    told,
)
from workers.networks.opsets import OLDEST
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset
from workers.networks.window import Window, window

TRANSPOSED = "ConvTranspose"
FILLED = 4
"""Times as large as a kernel it may become, filled with zeros up to its stride."""


@dataclass(frozen=True)
class _Axis:
    """One axis of an image. Output pixel `stride` q + r is the sum of x[q - j] w[`stride` j + r] over `taps` j, each q from
    `first` on, so many as `steps`; then those are kept that begin at `start`, `kept` of them."""

    size: int
    stride: int
    taps: int
    first: int
    steps: int
    start: int
    kept: int

    @property
    def pads(self) -> tuple[int, int]:
        return self.taps - 1 - self.first, self.first + self.steps - self.size


def transposed_convolutions_to_convolutions(model: ModelProto) -> str | None:
    """Those of one group and without gaps in their kernel, where sizes and weights are known."""
    if opset(model) < OLDEST or TRANSPOSED not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def convolved(node: NodeProto) -> list[NodeProto]:
        found = window(node, weights, shapes) if node.op_type == TRANSPOSED else None
        axes = _axes(node, found) if found is not None else []
        return _convolved(node, found.batch, axes, weights) if found is not None and axes else []

    written = rewrite(model.graph, convolved)
    return told(
        written, "transposed convolution was written as another", "transposed convolutions were written as others"
    )


def _axes(node: NodeProto, found: Window) -> list[_Axis]:
    """None of them where it stays as it is."""
    added = attribute(node, "output_padding", [0] * len(found.sizes))
    if attribute(node, "group", 1) != 1 or set(found.rates) != {1} or len(added) != len(found.sizes):
        return []
    each = zip(found.sizes, found.kernel, found.strides, added, found.before, found.behind, strict=True)
    axes = [_axis(*one) for one in each]
    filled = prod(axis.taps * axis.stride for axis in axes) <= FILLED * prod(found.kernel)
    return axes if filled and all(pad >= 0 for axis in axes for pad in axis.pads) else []


def _axis(size: int, kernel: int, stride: int, added: int, before: int, behind: int) -> _Axis:
    kept = stride * (size - 1) + kernel + added - before - behind
    if size == 1:  # what lies between pixels is of no matter where there is one
        stride = kernel
    first = before // stride
    steps = -(-(before + kept) // stride) - first
    return _Axis(size, stride, -(-kernel // stride), first, steps, before - first * stride, kept)


def _convolved(node: NodeProto, batch: int, axes: Sequence[_Axis], weights: Weights) -> list[NodeProto]:
    source, kernel, *bias = (name for name in node.input if name)
    values, parts = weights.get(kernel), Parts(node.output[0], weights)
    places, count, channels = prod(axis.stride for axis in axes), len(axes), values.shape[1]
    given = [parts.constant("kernel", _kernel(values, axes))]
    given += [parts.constant("bias", np.tile(weights.get(name), places)) for name in bias]
    pads = [*(axis.pads[0] for axis in axes), *(axis.pads[1] for axis in axes)]
    last = parts.add("Conv", "places", source, *given, pads=pads, kernel_shape=[axis.taps for axis in axes])
    area = 2  # where its axes begin
    if places > 1:
        area = 1
        apart = [batch, *(axis.steps for axis in axes), *(axis.stride for axis in axes), channels]
        beside = [batch, *(axis.steps * axis.stride for axis in axes), channels]
        order = [0, *(place for n in range(1, count + 1) for place in (n, n + count)), 2 * count + 1]
        last = parts.add("Transpose", "last", last, perm=channels_last(count + 2))
        if count > 1:
            last = parts.add("Reshape", "apart", last, parts.numbers("apart_sizes", apart))
            last = parts.add("Transpose", "beside", last, perm=order)
        last = parts.add("Reshape", "whole", last, parts.numbers("whole_sizes", beside))
    cut = [(place, axis) for place, axis in enumerate(axes, area) if axis.kept < axis.stride * axis.steps]
    if cut:
        bounds = {
            "starts": [axis.start for _, axis in cut],
            "ends": [axis.start + axis.kept for _, axis in cut],
            "axes": [place for place, _ in cut],
        }
        last = parts.add("Slice", "cut", last, *(parts.numbers(word, values) for word, values in bounds.items()))
    if area == 1:
        parts.add("Transpose", "second", last, perm=channels_second(count + 2))
    return parts.all()


def _kernel(values: Array, axes: Sequence[_Axis]) -> Array:
    """[inputs, outputs, *kernel] as [places x outputs, inputs, *taps], the pixel furthest behind first."""
    inputs, outputs, *kernel = values.shape
    filled = np.pad(values, [(0, 0), (0, 0), *((0, a.taps * a.stride - k) for a, k in zip(axes, kernel, strict=True))])
    apart = filled.reshape(inputs, outputs, *(n for axis in axes for n in (axis.taps, axis.stride)))
    taps, places = range(2, 2 + 2 * len(axes), 2), range(3, 3 + 2 * len(axes), 2)
    ordered = np.flip(apart, tuple(taps)).transpose(*places, 1, 0, *taps)
    return ordered.reshape(-1, inputs, *(axis.taps for axis in axes))
