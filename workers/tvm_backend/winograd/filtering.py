"""F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3), what they cost on a machine, and which of them pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KERNEL = 3

CACHED = 4.0
"""FLOP that a core does while a byte moves through its caches, where what lies between two operators mostly is."""
LARGEST = 16.0
"""FLOP a byte of weights from memory, at most: beyond, somebody else used the memory while it was measured."""
WORTH = 0.85
"""What the transformed convolution may cost of the plain one: the estimate is a rule of the machine, no measurement."""


@dataclass(frozen=True, eq=False)
class Filtering:
    """F(m x m, 3 x 3) for tiles of m x m outputs: Y = A' [(G g G') * (B' d B)] A (equation 8)."""

    outputs: int
    data: NDArray[np.float64]
    """B', (m + 2, m + 2)."""
    kernel: NDArray[np.float64]
    """G, (m + 2, 3)."""
    product: NDArray[np.float64]
    """A', (m, m + 2)."""

    @property
    def inputs(self) -> int:
        """Width of a tile of the input."""
        return self.outputs + KERNEL - 1


F2 = Filtering(
    outputs=2,
    data=np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], np.float64),
    kernel=np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.float64) / 2,
    product=np.array([[1, 1, 1, 0], [0, 1, -1, -1]], np.float64),
)
F4 = Filtering(
    outputs=4,
    data=np.array(
        [
            [4, 0, -5, 0, 1, 0],
            [0, -4, -4, 1, 1, 0],
            [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0],
            [0, 2, -1, -2, 1, 0],
            [0, 4, 0, -5, 0, 1],
        ],
        np.float64,
    ),
    kernel=np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]], np.float64) / 24,
    product=np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]], np.float64),
)


@dataclass(frozen=True)
class Arithmetic:
    """What numbers cost: a FLOP as part of one on float32, and bytes of a weight, of an input and of a product."""

    flop: float
    weight: int
    data: int
    product: int


SINGLES = Arithmetic(1.0, 4, 4, 4)
SHORTS = Arithmetic(0.5, 2, 2, 4)
"""Of whole numbers of 16 bits, two at a time."""


@dataclass(frozen=True)
class Convolution:
    """A 3 x 3 convolution with stride 1, in NHWC."""

    batch: int
    height: int
    width: int
    channels: int
    filters: int
    padding: tuple[int, int, int, int]
    """Top, left, bottom, right."""
    arithmetic: Arithmetic = SINGLES

    @property
    def outputs(self) -> tuple[int, int]:
        """Height and width of the output."""
        top, left, bottom, right = self.padding
        return self.height + top + bottom - KERNEL + 1, self.width + left + right - KERNEL + 1

    def tiles(self, filtering: Filtering) -> tuple[int, int]:
        """Tiles of the output in height and width; the last ones may reach over its edge."""
        height, width = self.outputs
        return math.ceil(height / filtering.outputs), math.ceil(width / filtering.outputs)

    def plain_cost(self, balance: float) -> float:
        """Of the plain convolution, in FLOP: its own, or `balance` for each byte of its weights, whichever is more: they come
        from memory while it computes."""
        weights = KERNEL**2 * self.channels * self.filters
        return self._products(weights, self.batch * math.prod(self.outputs), balance)

    def cost(self, filtering: Filtering, balance: float) -> float:
        """The same of the transformed one, and of its tiles, which are written and read twice."""
        places, tiles = filtering.inputs**2, self.batch * math.prod(self.tiles(filtering))
        weights = places * self.channels * self.filters
        numbers = self.arithmetic
        moved = 2 * places * tiles * (self.channels * numbers.data + self.filters * numbers.product)
        return self._products(weights, tiles, balance) + CACHED * moved

    def _products(self, weights: int, times: int, balance: float) -> float:
        return max(2.0 * self.arithmetic.flop * weights * times, balance * self.arithmetic.weight * weights)


def chosen(
    convolution: Convolution, lanes: int, balance: float, among: Sequence[Filtering] = (F2, F4)
) -> Filtering | None:
    """The cheapest filtering where it is worth it; None for the plain convolution.

    `balance` is rounded to a power of two: a target measured again must come to the same operators. Channels must be whole
    vectors: the transforms work on one vector of channels of a tile at a time.
    """
    if convolution.channels % lanes or convolution.filters % lanes:
        return None
    rounded = 2.0 ** round(math.log2(min(balance, LARGEST)))
    best = min(among, key=lambda filtering: convolution.cost(filtering, rounded))
    return best if convolution.cost(best, rounded) <= WORTH * convolution.plain_cost(rounded) else None


def weights_transformed(weights: NDArray[np.float32], filtering: Filtering, times: float = 1.0) -> NDArray[np.float32]:
    """(t G) g (t G)' of (3, 3, channels, filters), t being `times`, as (places, channels, filters); computed in double."""
    kernel = times * filtering.kernel
    found: NDArray[np.float64] = np.einsum(
        "xr,rsio,ys->xyio", kernel, weights.astype(np.float64), kernel, optimize=True
    )
    return np.asarray(found.reshape(-1, *weights.shape[2:]), np.float32)
