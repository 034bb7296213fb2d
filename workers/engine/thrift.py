"""Which programs are worth compiling, by how much code they will be.

Compiling is nine tenths of a run's clock. In five runs of two to three minutes on two cores of an AMD EPYC, candidates with
over five times the code of their operator's fastest that took over 0.2 s to compile had 27 to 39 % of all compile time; of
242 improvements they brought three.
"""

from __future__ import annotations

import math

FACTOR = 5.0
"""Times the code of the operator's fastest program."""
FLOOR = 0.2
"""Seconds to compile; what takes less is not worth a look."""
SHARE = 0.1
"""Of all compile time that larger programs may take: what has more code is rarely faster, but it is not never."""


class Thrift:
    """Sizes are those of code, in any unit that compile time grows with."""

    def __init__(self, factor: float = FACTOR) -> None:
        """An infinite `factor` finds everything worth it."""
        self._factor = factor
        self._fastest: dict[int, float] = {}
        self._seconds = self._size = self._large = 0.0

    @property
    def limits(self) -> bool:
        """Whether anything may not be worth it."""
        return math.isfinite(self._factor)

    @property
    def knows(self) -> bool:
        """Whether anything was compiled, so that it can tell what programs take."""
        return self._size > 0

    def worth(self, operator: int, size: float) -> bool:
        """Whether to compile a new program of `operator`; always until one of its programs ran."""
        if not self._is_large(operator, size):
            return True
        return self._large + self.expected(size) <= SHARE * self._seconds

    def compiled(self, operator: int, size: float, seconds: float) -> None:
        if self._is_large(operator, size):
            self._large += seconds
        self._seconds += seconds
        self._size += size

    def fastest(self, operator: int, size: float) -> None:
        """The operator's fastest program so far has `size`."""
        self._fastest[operator] = size

    def _is_large(self, operator: int, size: float) -> bool:
        fastest = self._fastest.get(operator)
        return fastest is not None and size > self._factor * fastest and self.expected(size) > FLOOR

    def expected(self, size: float) -> float:
        """Seconds to compile, at the mean rate so far."""
        return size * self._seconds / self._size if self.knows else 0.0
