"""How many products of whole numbers an instruction adds up, and of which numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Span = tuple[float, float]
"""The least and the greatest number."""

ROOM = 2**31 - 1
"""Of a sum."""


@dataclass(frozen=True)
class Grouping:
    """So many products at once, of numbers of type `dtype` with weights that 32 bits hold together. `data` and `weights` are
    what those may be. `instructions` are LLVM's, by sums at a time; with `adds` they take the sum so far."""

    name: str
    count: int
    dtype: str
    data: Span
    weights: Span
    adds: bool
    instructions: Mapping[int, str] = field(hash=False)

    @property
    def bits(self) -> int:
        """Of a factor."""
        return 32 // self.count

    @property
    def signed(self) -> bool:
        """Whether the data are; weights are."""
        return self.data[0] < 0

    def offset(self, data: Span) -> float | None:
        """What is taken off numbers of this span, and of the zeros around them, so that they are some of these; None where
        nothing would do."""
        low, high = min(data[0], 0.0), max(data[1], 0.0)
        if self.signed:
            return 0.0 if self.data[0] <= low and high <= self.data[1] else None
        return low if high - low <= self.data[1] else None

    def takes(self, weights: NDArray[np.float32], data: Span, zero: Span = (0.0, 0.0)) -> bool:
        """Whether sums of numbers of this span with weights (..., channels, filters) fit, whatever is read, and still do
        when a `zero` is taken off each number."""
        offset = self.offset(data)
        if offset is None or weights.min() < self.weights[0] or weights.max() > self.weights[1]:
            return False
        largest = max(
            max(data[1], 0.0) - offset, offset - min(data[0], 0.0)
        )  # zeros around them are among what is read
        sums = np.abs(weights, dtype=np.float64).sum(axis=tuple(range(weights.ndim - 1)))
        return bool((largest + max(abs(offset), -zero[0], zero[1])) * sums.max() <= ROOM)

    def packed(self, weights: NDArray[np.float32]) -> NDArray[np.uint32]:
        """Whole numbers (..., channels, filters) as uint32 (..., groups, filters): channels one behind the other, the last
        ones with zeros."""
        missing = -weights.shape[-2] % self.count
        whole = np.pad(weights, [*[(0, 0)] * (weights.ndim - 2), (0, missing), (0, 0)]).astype(f"int{self.bits}")
        found = np.zeros((*whole.shape[:-2], whole.shape[-2] // self.count, whole.shape[-1]), np.uint32)
        for place in range(self.count):
            part = whole[..., place :: self.count, :].view(f"uint{self.bits}").astype(np.uint32)
            found |= part << np.uint32(place * self.bits)
        return found


_LEAST = -(2**15) + 1
"""The least number of 16 bits is left out: two products of it by itself have no room."""
PAIRS = Grouping(
    "pairs",
    2,
    "int16",
    (_LEAST, 2**15 - 1),
    (_LEAST, 2**15 - 1),
    adds=False,  # LLVM makes VPDPWSSD of it and the sum where there is one
    instructions={4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"},
)
FOURS = Grouping(
    "fours",
    4,
    "uint8",
    (0, 255),
    (-128, 127),
    adds=True,
    instructions={width: f"llvm.x86.avx512.vpdpbusd.{32 * width}" for width in (4, 8, 16)},
)
GROUPINGS = (FOURS, PAIRS)
"""The quickest first."""
