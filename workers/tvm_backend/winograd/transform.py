"""The two ends of a transformed convolution as tensor expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te
from tvm.tirx import Select, all, const, if_then_else

from workers.tvm_backend.winograd import schedules
from workers.tvm_backend.winograd.filtering import Convolution, Filtering

KEPT = {"meta_schedule.inline_rule": "disable"}
"""For what the schedules place themselves."""


@dataclass(frozen=True)
class Transform:
    """The two ends of a transformed convolution as tensor expressions, of numbers as they are given; `lanes` channels at a
    time. Whole products are of weights times 2 to the `shift`, which is taken off."""

    convolution: Convolution
    filtering: Filtering
    lanes: int
    shift: int = 0

    def input(self, data: te.Tensor) -> te.Tensor:
        """B' d B of every tile: (batch, height, width, channels) to (places, tiles, channels)."""
        conv, width, step = self.convolution, self.filtering.inputs, self.filtering.outputs
        high, wide = conv.tiles(self.filtering)
        top, left, _, _ = conv.padding
        shape = (width, width, conv.batch * high * wide, conv.channels)

        def padded(r: Any, s: Any, tile: Any, channel: Any) -> Any:
            y = tile // wide % high * step + r - top
            x = tile % wide * step + s - left
            inside = all(y >= 0, y < conv.height, x >= 0, x < conv.width)
            return if_then_else(inside, data[tile // (high * wide), y, x, channel], const(0, data.dtype))

        def row(r: Any, s: Any, tile: Any, channel: Any) -> Any:
            return _row(self.filtering.data, r, lambda k: tiles[k, s, tile, channel], data.dtype)

        def place(number: Any, tile: Any, channel: Any) -> Any:
            return _row(
                self.filtering.data, number % width, lambda k: rows[number // width, k, tile, channel], data.dtype
            )

        tiles = te.compute(shape, padded, name="tiles", attrs=KEPT)
        rows = te.compute(shape, row, name="rows", attrs=KEPT)
        attributes = {"schedule_rule": schedules.INPUT, schedules.SIZES: [width, self.lanes]}
        return te.compute((width * width, *shape[2:]), place, name=schedules.INPUT, attrs=attributes)

    def output(self, product: te.Tensor) -> te.Tensor:
        """A' m A of every tile: (places, tiles, filters) to (batch, height, width, filters)."""
        conv, width, step = self.convolution, self.filtering.inputs, self.filtering.outputs
        high, wide = conv.tiles(self.filtering)

        def row(i: Any, s: Any, tile: Any, channel: Any) -> Any:
            return _row(self.filtering.product, i, lambda k: product[k * width + s, tile, channel], product.dtype)

        def placed(image: Any, y: Any, x: Any, channel: Any) -> Any:
            tile = (image * high + y // step) * wide + x // step
            found = _row(self.filtering.product, x % step, lambda k: rows[y % step, k, tile, channel], product.dtype)
            return found >> self.shift if self.shift else found

        rows = te.compute((step, width, conv.batch * high * wide, conv.filters), row, name="rows", attrs=KEPT)
        attributes = {"schedule_rule": schedules.OUTPUT, schedules.SIZES: [step, self.lanes]}
        return te.compute((conv.batch, *conv.outputs, conv.filters), placed, name=schedules.OUTPUT, attrs=attributes)


def _row(matrix: NDArray[np.float64], row: Any, term: Callable[[int], Any], dtype: str) -> Any:
    """The product of one row of `matrix` with terms of a type; `row` is a number once its loop is unrolled."""
    products = [_combined(coefficients, term, dtype) for coefficients in matrix]
    found = products[-1]
    for number in range(len(products) - 2, -1, -1):
        found = Select(row == number, products[number], found)
    return found


def _combined(coefficients: NDArray[np.float64], term: Callable[[int], Any], dtype: str) -> Any:
    total: Any = None
    for place, coefficient in enumerate(coefficients):
        if not coefficient:
            continue
        value = term(place)
        if total is None:
            total = value if coefficient == 1 else const(coefficient, dtype) * value
        elif abs(coefficient) == 1:
            total = total + value if coefficient > 0 else total - value
        else:
            total = total + const(coefficient, dtype) * value
    return total
