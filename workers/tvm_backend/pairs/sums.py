"""Convolutions and matrix products over pairs of channels, as tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te
from tvm.tirx import all, const, if_then_else

from workers.tvm_backend.pairs.instruction import product_of_pairs

MOST = 2**15 - 1
"""Of a factor. The least number of 16 bits is left out: two products of it by itself have no room."""
ROOM = 2**31 - 1
"""Of a sum."""


@dataclass(frozen=True)
class Convolution:
    """In NHWC, of one group. `padding`: top, left, bottom, right."""

    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]

    @staticmethod
    def fits(call: Any) -> bool:
        """Whether a call of TVM's convolution is one of these."""
        laid_out = (str(call.attrs.data_layout), str(call.attrs.kernel_layout)) == ("NHWC", "HWIO")
        return laid_out and int(call.attrs.groups) == 1

    @classmethod
    def of(cls, call: Any) -> Convolution:
        """The one that a call computes."""
        attributes = call.attrs
        top, left, bottom, right = (int(n) for n in attributes.padding)
        strides, dilation = ((int(n), int(m)) for n, m in (attributes.strides, attributes.dilation))
        return cls(strides, dilation, (top, left, bottom, right))

    def sums(self, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """int16 (batch, height, width, channels) and uint32 (height, width, pairs, filters) to int32 sums."""
        batch, height, width, channels = (int(n) for n in data.shape)
        high, wide, pairs, filters = (int(n) for n in weights.shape)
        top, left, bottom, right = self.padding
        rows, columns = height + top + bottom, width + left + right
        down, across = self.strides
        dilated = [step * (size - 1) + 1 for step, size in zip(self.dilation, (high, wide), strict=True)]
        shape = (batch, (rows - dilated[0]) // down + 1, (columns - dilated[1]) // across + 1, filters)
        if (rows, columns, 2 * pairs) == (height, width, channels):
            padded = data
        else:
            padded = te.compute(
                (batch, rows, columns, 2 * pairs), lambda *at: _inside(data, at, (0, top, left, 0)), name="padded"
            )
        r, s, p = (te.reduce_axis((0, n), name) for n, name in ((high, "r"), (wide, "s"), (pairs, "p")))

        def product(n: Any, y: Any, x: Any, f: Any) -> Any:
            place = (n, y * down + r * self.dilation[0], x * across + s * self.dilation[1])
            read = product_of_pairs(padded[(*place, 2 * p)], padded[(*place, 2 * p + 1)], weights[r, s, p, f])
            return te.sum(read, axis=[r, s, p])

        return te.compute(shape, product, name="conv2d_pairs")


def matrix_sums(data: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """int16 (..., rows, channels) and uint32 (pairs, columns) to int32 sums (..., rows, columns). Or, of (members, rows,
    channels), of each member with its own of (members, pairs, columns)."""
    *outer, channels = (int(n) for n in data.shape)
    *members, pairs, columns = (int(n) for n in weights.shape)
    whole = data
    if channels != 2 * pairs:
        whole = te.compute((*outer, 2 * pairs), lambda *at: _inside(data, at, [0] * len(at)), name="padded")
    p = te.reduce_axis((0, pairs), "p")

    def product(*at: Any) -> Any:
        *row, column = at
        weight = weights[(*row[: len(members)], p, column)]
        return te.sum(product_of_pairs(whole[(*row, 2 * p)], whole[(*row, 2 * p + 1)], weight), axis=[p])

    return te.compute((*outer, columns), product, name="matmul_pairs")


def _inside(data: te.Tensor, at: Sequence[Any], before: Sequence[int]) -> Any:
    """`data` with so many zeros `before` it along each axis, and as many behind as there is room for."""
    places = [place - margin for place, margin in zip(at, before, strict=True)]
    held = all(*(c for p, n in zip(places, data.shape, strict=True) for c in (p >= 0, p < n)))
    return if_then_else(held, data[tuple(places)], const(0, data.dtype))


def packed(weights: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Whole numbers (..., channels, filters) as uint32 (..., pairs, filters): channels one behind the other, a last one with
    a zero."""
    odd = weights.shape[-2] % 2
    even = np.pad(weights, [*[(0, 0)] * (weights.ndim - 2), (0, odd), (0, 0)]).astype(np.int16).view(np.uint16)
    low, high = (even[..., start::2, :].astype(np.uint32) for start in (0, 1))
    return np.asarray(low | (high << np.uint32(16)), np.uint32)
