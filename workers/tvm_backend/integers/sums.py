"""Convolutions and matrix products over groups of channels, as tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, topi
from tvm.tirx import all, const, if_then_else

from workers.tvm_backend.integers.grouping import Grouping
from workers.tvm_backend.integers.instruction import product, total


@dataclass(frozen=True)
class Convolution:
    """In NHWC. `padding`: top, left, bottom, right."""

    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    groups: int = 1

    @staticmethod
    def fits(call: Any) -> bool:
        """Whether a call of TVM's convolution is one of these."""
        return (str(call.attrs.data_layout), str(call.attrs.kernel_layout)) == ("NHWC", "HWIO")

    @classmethod
    def of(cls, call: Any) -> Convolution:
        """The one that a call computes."""
        attributes = call.attrs
        top, left, bottom, right = (int(n) for n in attributes.padding)
        strides, dilation = ((int(n), int(m)) for n, m in (attributes.strides, attributes.dilation))
        return cls(strides, dilation, (top, left, bottom, right), int(attributes.groups))

    def sums(self, grouping: Grouping, blank: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """(batch, height, width, channels) of the grouping's type and uint32 (height, width, groups, filters) to int32 sums;
        `blank` lies around the data."""
        batch, height, width, channels = (int(n) for n in data.shape)
        high, wide, groups, filters = (int(n) for n in weights.shape)
        rows, columns = self._framed(height, width)
        down, across = self.strides
        dilated = [step * (size - 1) + 1 for step, size in zip(self.dilation, (high, wide), strict=True)]
        shape = (batch, (rows - dilated[0]) // down + 1, (columns - dilated[1]) // across + 1, filters)
        whole = (batch, rows, columns, grouping.count * groups)
        padded = data
        if whole != (batch, height, width, channels):
            padded = _padded(data, whole, self._before, const(blank, data.dtype))
        r, s, g = (te.reduce_axis((0, n), name) for n, name in ((high, "r"), (wide, "s"), (groups, "g")))

        def products(n: Any, y: Any, x: Any, f: Any) -> Any:
            place = (n, y * down + r * self.dilation[0], x * across + s * self.dilation[1])
            return total(product(grouping, _group(grouping, padded, place, g), weights[r, s, g, f]), axis=[r, s, g])

        return te.compute(shape, products, name=f"conv2d_{grouping.name}")

    def in_groups(self, offset: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """Whole numbers less an offset (batch, height, width, channels) and float32 (height, width, channels of a group,
        filters) to float32 sums. Each number is converted once, where the frame is put around it, not once a product."""
        batch, height, width, channels = (int(n) for n in data.shape)
        framed = (batch, *self._framed(height, width), channels)
        real = _padded(data, framed, self._before, const(0.0, "float32"), lambda n: n.astype("float32") + float(offset))
        return topi.nn.conv(
            real, weights, list(self.strides), [0] * 4, list(self.dilation), self.groups, "NHWC", "HWIO", "float32"
        )

    def _framed(self, height: int, width: int) -> tuple[int, int]:
        top, left, bottom, right = self.padding
        return height + top + bottom, width + left + right

    @property
    def _before(self) -> tuple[int, int, int, int]:
        top, left, *_ = self.padding
        return 0, top, left, 0


def matrix_sums(grouping: Grouping, blank: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
    """(..., rows, channels) of the grouping's type and uint32 (groups, columns) to int32 sums (..., rows, columns). Or, of
    (members, rows, channels), of each member with its own of (members, groups, columns). `blank` fills the last group."""
    *outer, channels = (int(n) for n in data.shape)
    *members, groups, columns = (int(n) for n in weights.shape)
    whole = (*outer, grouping.count * groups)
    padded = data if whole == (*outer, channels) else _padded(data, whole, [0] * len(whole), const(blank, data.dtype))
    g = te.reduce_axis((0, groups), "g")

    def products(*at: Any) -> Any:
        *row, column = at
        weight = weights[(*row[: len(members)], g, column)]
        return total(product(grouping, _group(grouping, padded, row, g), weight), axis=[g])

    return te.compute((*outer, columns), products, name=f"matmul_{grouping.name}")


def _group(grouping: Grouping, data: te.Tensor, place: Sequence[Any], group: Any) -> list[Any]:
    """The numbers of a group of channels."""
    return [data[(*place, grouping.count * group + one)] for one in range(grouping.count)]


def _padded(
    data: te.Tensor,
    shape: Sequence[int],
    before: Sequence[int],
    blank: Any,
    read: Callable[[Any], Any] = lambda number: number,
) -> te.Tensor:
    """`data` as it is `read`, with so many of `blank` `before` it along each axis, and as many behind as the shape has room
    for."""

    def inside(*at: Any) -> Any:
        places = [place - margin for place, margin in zip(at, before, strict=True)]
        held = all(*(c for p, n in zip(places, data.shape, strict=True) for c in (p >= 0, p < n)))
        return if_then_else(held, read(data[tuple(places)]), blank)

    return te.compute(tuple(shape), inside, name="padded")
