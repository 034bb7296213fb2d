"""Convolutions and matrix products over groups of channels, as tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, topi
from tvm.tirx import all, const, if_then_else

from workers.tvm_backend.integers.grouping import Grouping
from workers.tvm_backend.integers.instruction import product, total
from workers.tvm_backend.mutation import is_call

LAYOUTS = {
    "relax.nn.conv1d": ("NWC", "WIO"),
    "relax.nn.conv2d": ("NHWC", "HWIO"),
    "relax.nn.conv3d": ("NDHWC", "DHWIO"),
}
"""Of data and weights with the channels last, by TVM's operator."""


@dataclass(frozen=True)
class Convolution:
    """With the channels last. `before` and `behind` are the zeros around each axis."""

    layouts: tuple[str, str]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    groups: int = 1

    @classmethod
    def of(cls, call: Any) -> Convolution | None:
        """The one that a call computes; None where it is none with the channels last."""
        layouts = next((found for name, found in LAYOUTS.items() if is_call(call, name)), None)
        if layouts is None or layouts != (str(call.attrs.data_layout), str(call.attrs.kernel_layout)):
            return None
        strides, dilation, padding = (
            tuple(int(n) for n in numbers) for numbers in (call.attrs.strides, call.attrs.dilation, call.attrs.padding)
        )
        axes = len(strides)
        return cls(layouts, strides, dilation, padding[:axes], padding[axes:], int(call.attrs.groups))

    @property
    def name(self) -> str:
        """As TVM has it."""
        return f"conv{len(self.strides)}d"

    def sums(self, grouping: Grouping, blank: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """(batch, *sizes, channels) of the grouping's type and uint32 (*kernel, groups, filters) to int32 sums; `blank` lies
        around the data."""
        batch, *sizes, channels = (int(n) for n in data.shape)
        *kernel, groups, filters = (int(n) for n in weights.shape)
        framed = self._framed(sizes)
        reached = [step * (size - 1) + 1 for step, size in zip(self.dilation, kernel, strict=True)]
        kept = [(f - r) // stride + 1 for f, r, stride in zip(framed, reached, self.strides, strict=True)]
        whole = (batch, *framed, grouping.count * groups)
        padded = data
        if whole != (batch, *sizes, channels):
            padded = _padded(data, whole, (0, *self.before, 0), const(blank, data.dtype))
        *taps, g = (
            te.reduce_axis((0, n), name)
            for n, name in zip((*kernel, groups), (*"qrs"[-len(kernel) :], "g"), strict=True)
        )

        def products(n: Any, *place: Any) -> Any:
            *at, f = place
            steps = zip(at, self.strides, taps, self.dilation, strict=True)
            read = (n, *(p * stride + tap * step for p, stride, tap, step in steps))
            return total(product(grouping, _group(grouping, padded, read, g), weights[(*taps, g, f)]), axis=[*taps, g])

        return te.compute((batch, *kept, filters), products, name=f"{self.name}_{grouping.name}")

    def in_groups(self, offset: int, data: te.Tensor, weights: te.Tensor) -> te.Tensor:
        """Whole numbers less an offset (batch, *sizes, channels) and float32 (*kernel, channels of a group, filters) to float32
        sums. Each number is converted once, where the frame is put around it, not once a product."""
        batch, *sizes, channels = (int(n) for n in data.shape)
        framed = (batch, *self._framed(sizes), channels)
        real = _padded(
            data, framed, (0, *self.before, 0), const(0.0, "float32"), lambda n: n.astype("float32") + float(offset)
        )
        none = [0] * (2 * len(sizes))
        return topi.nn.conv(
            real, weights, list(self.strides), none, list(self.dilation), self.groups, *self.layouts, "float32"
        )

    def _framed(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(
            before + size + behind for before, size, behind in zip(self.before, sizes, self.behind, strict=True)
        )


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
