"""Transposed convolutions as convolutions whose channels are the pixels between those that they read.

Of the numbers between which TVM's program puts zeros, stride 2 leaves a fourth: it multiplies all of them. Here what lies at
one place between two pixels (Shi et al. 2016, section 3.2) is a convolution of pixels that are next to each other, the places
are its channels, and a transposition puts these beside each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Weights, attribute, operator_types, rewrite, told
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes

TRANSPOSED = "ConvTranspose"


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
    if TRANSPOSED not in operator_types(model):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def convolved(node: NodeProto) -> list[NodeProto]:
        axes = _axes(node, weights, shapes) if node.op_type == TRANSPOSED else None
        return _convolved(node, axes, weights, shapes) if axes else []

    written = rewrite(model.graph, convolved)
    return told(
        written, "transposed convolution was written as another", "transposed convolutions were written as others"
    )


def _axes(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> list[_Axis] | None:
    """None where it stays as it is."""
    shape = shapes.get(node.input[0])
    known = shape is not None and shape.static and all(name in weights for name in node.input[1:] if name)
    if not known or attribute(node, "group", 1) != 1 or attribute(node, "auto_pad", b"NOTSET") != b"NOTSET":
        return None
    if attribute(node, "output_shape") is not None or set(attribute(node, "dilations", [1])) != {1}:
        return None
    sizes, kernel = shape.static[2:], weights.shape(node.input[1])[2:]  # type: ignore[union-attr, index]
    count = len(sizes)
    strides, added, pads = (
        attribute(node, name, [least] * many)
        for name, least, many in (("strides", 1, count), ("output_padding", 0, count), ("pads", 0, 2 * count))
    )
    axes = [_axis(*one) for one in zip(sizes, kernel, strides, added, pads[:count], pads[count:], strict=True)]
    return axes if all(pad >= 0 for axis in axes for pad in axis.pads) else None


def _axis(size: int, kernel: int, stride: int, added: int, before: int, behind: int) -> _Axis:
    kept = stride * (size - 1) + kernel + added - before - behind
    if size == 1:  # what lies between pixels is of no matter where there is one
        stride = kernel
    first = before // stride
    steps = -(-(before + kept) // stride) - first
    return _Axis(size, stride, -(-kernel // stride), first, steps, before - first * stride, kept)


def _convolved(
    node: NodeProto, axes: list[_Axis], weights: Weights, shapes: Mapping[str, TensorShape]
) -> list[NodeProto]:
    source, kernel, *bias = (name for name in node.input if name)
    result, batch = node.output[0], shapes[source].dims[0]  # type: ignore[index]
    values = weights.get(kernel)
    places = prod(axis.stride for axis in axes)
    given = [weights.put(f"{result}__kernel", _kernel(values, axes))]
    given += [weights.put(f"{result}__bias", np.tile(weights.get(name), places)) for name in bias]
    made: list[NodeProto] = []

    def add(kind: str, part: str, inputs: list[str], **attributes: object) -> str:
        made.append(helper.make_node(kind, inputs, [f"{result}__{part}"], **attributes))
        return f"{result}__{part}"

    def numbers(word: str, of: Iterable[int | str | None]) -> str:
        return weights.put(f"{result}__{word}", np.asarray([*of], np.int64))

    pads = [*(axis.pads[0] for axis in axes), *(axis.pads[1] for axis in axes)]
    last = add("Conv", "places", [source, *given], pads=pads, kernel_shape=[axis.taps for axis in axes])
    if places > 1:
        count, channels = len(axes), values.shape[1]
        apart = [batch, *(axis.stride for axis in axes), channels, *(axis.steps for axis in axes)]
        beside = [batch, channels, *(axis.stride * axis.steps for axis in axes)]
        order = [0, count + 1, *(place for n in range(count) for place in (count + 2 + n, 1 + n))]
        last = add("Reshape", "apart", [last, numbers("apart_sizes", apart)])
        last = add("Transpose", "beside", [last], perm=order)
        last = add("Reshape", "whole", [last, numbers("whole_sizes", beside)])
    cut = [(n + 2, axis) for n, axis in enumerate(axes) if axis.kept < axis.stride * axis.steps]
    if cut:
        bounds = [
            numbers("starts", (axis.start for _, axis in cut)),
            numbers("ends", (axis.start + axis.kept for _, axis in cut)),
            numbers("axes", (place for place, _ in cut)),
        ]
        add("Slice", "cut", [last, *bounds])
    made[-1].output[0] = result
    return made


def _kernel(values: Array, axes: list[_Axis]) -> Array:
    """[inputs, outputs, *kernel] as [places x outputs, inputs, *taps], the pixel furthest behind first."""
    inputs, outputs, *kernel = values.shape
    filled = np.pad(values, [(0, 0), (0, 0), *((0, a.taps * a.stride - k) for a, k in zip(axes, kernel, strict=True))])
    apart = filled.reshape(inputs, outputs, *(n for axis in axes for n in (axis.taps, axis.stride)))
    taps, places = range(2, 2 + 2 * len(axes), 2), range(3, 3 + 2 * len(axes), 2)
    ordered = np.flip(apart, tuple(taps)).transpose(*places, 1, 0, *taps)
    return np.ascontiguousarray(ordered.reshape(-1, inputs, *(axis.taps for axis in axes)))
