"""Convolutions and matrix products over groups of channels, as tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te
from tvm.tirx import all, const, if_then_else

from workers.tvm_backend.integers.grouping import Grouping
from workers.tvm_backend.integers.instruction import product, total


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

    def sums(self, grouping: Grouping, blank: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """(batch, height, width, channels) of the grouping's type and uint32 (height, width, groups, filters) to int32 sums;
        `blank` lies around the data."""
        batch, height, width, channels = (int(n) for n in data.shape)
        high, wide, groups, filters = (int(n) for n in weights.shape)
        top, left, bottom, right = self.padding
        rows, columns = height + top + bottom, width + left + right
        down, across = self.strides
        dilated = [step * (size - 1) + 1 for step, size in zip(self.dilation, (high, wide), strict=True)]
        shape = (batch, (rows - dilated[0]) // down + 1, (columns - dilated[1]) // across + 1, filters)
        whole = (batch, rows, columns, grouping.count * groups)
        padded = data if whole == (batch, height, width, channels) else _padded(data, whole, (0, top, left, 0), blank)
        r, s, g = (te.reduce_axis((0, n), name) for n, name in ((high, "r"), (wide, "s"), (groups, "g")))

        def products(n: Any, y: Any, x: Any, f: Any) -> Any:
            place = (n, y * down + r * self.dilation[0], x * across + s * self.dilation[1])
            return total(product(grouping, _group(grouping, padded, place, g), weights[r, s, g, f]), axis=[r, s, g])

        return te.compute(shape, products, name=f"conv2d_{grouping.name}")


def matrix_sums(grouping: Grouping, blank: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """(..., rows, channels) of the grouping's type and uint32 (groups, columns) to int32 sums (..., rows, columns). Or, of
    (members, rows, channels), of each member with its own of (members, groups, columns). `blank` fills the last group."""
    *outer, channels = (int(n) for n in data.shape)
    *members, groups, columns = (int(n) for n in weights.shape)
    whole = (*outer, grouping.count * groups)
    padded = data if whole == (*outer, channels) else _padded(data, whole, [0] * len(whole), blank)
    g = te.reduce_axis((0, groups), "g")

    def products(*at: Any) -> Any:
        *row, column = at
        weight = weights[(*row[: len(members)], g, column)]
        return total(product(grouping, _group(grouping, padded, row, g), weight), axis=[g])

    return te.compute((*outer, columns), products, name=f"matmul_{grouping.name}")


def _group(grouping: Grouping, data: te.Tensor, place: Sequence[Any], group: Any) -> list[Any]:
    """The numbers of a group of channels."""
    return [data[(*place, grouping.count * group + one)] for one in range(grouping.count)]


def _padded(data: te.Tensor, shape: Sequence[int], before: Sequence[int], blank: int) -> te.Tensor:
    """`data` with so many of `blank` `before` it along each axis, and as many behind as the shape has room for."""

    def inside(*at: Any) -> Any:
        places = [place - margin for place, margin in zip(at, before, strict=True)]
        held = all(*(c for p, n in zip(places, data.shape, strict=True) for c in (p >= 0, p < n)))
        return if_then_else(held, data[tuple(places)], const(blank, data.dtype))

    return te.compute(tuple(shape), inside, name="padded")
