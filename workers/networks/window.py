"""How a convolution's kernel goes over an image, a signal or a volume."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import NodeProto

from workers.networks.graph import Weights, attribute
from workers.networks.shape import TensorShape, sizes_of


@dataclass(frozen=True)
class Window:
    """A number for each axis of the image; `batch` of these."""

    batch: int
    sizes: list[int]
    kernel: list[int]
    strides: list[int]
    rates: list[int]
    before: list[int]
    behind: list[int]


def window(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> Window | None:
    """Of a convolution, transposed or not, of known sizes whose kernel and bias are constants and whose padding is written out;
    None of another, and of numbers that do not fit each other."""
    static = sizes_of(shapes, node.input[0])
    if len(static) < 3 or any(name not in weights for name in node.input[1:] if name):
        return None
    if attribute(node, "auto_pad", b"NOTSET") != b"NOTSET" or attribute(node, "output_shape") is not None:
        return None
    batch, _, *sizes = static
    kernel, axes = [*weights.shape(node.input[1])[2:]], len(sizes)
    strides, rates, pads = (
        [*attribute(node, name, [least] * count)]
        for name, least, count in (("strides", 1, axes), ("dilations", 1, axes), ("pads", 0, 2 * axes))
    )
    fits = [axes, axes, axes, 2 * axes] == [len(kernel), len(strides), len(rates), len(pads)]
    if not fits or min(*sizes, *kernel, *strides, *rates) < 1:
        return None
    return Window(batch, sizes, kernel, strides, rates, pads[:axes], pads[axes:])
