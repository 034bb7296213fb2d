"""How long a program may take to compile, by what compiled lately."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence

MOST = 4.0
"""Seconds. Most candidates compile in 0.1; one that takes forty times as long is code unrolled beyond any instruction cache."""
MOST_OF_GPU = 8.0
"""The same of a GPU's: what draws in headers, as half precision does, takes 2.3 to 3.2 on a core of its own."""
LEAST = 1.0
"""What another worker in its place takes, 0.1 to 0.3, with what is compiled anew, half a second to a whole one."""
FACTOR = 10.0
"""Times the median of what compiled lately. In a run of ResNet-18 one program of a hundred took over seven medians, and none
of those that were faster than what was known more than one and a half."""
OWN = 4.0
"""Times the quickest of the operator's own."""
USUALLY = 2.0
"""Times the quickest of its operator: what most of its programs take at most."""
LATELY = 200
"""Programs."""
KNOWN = 20
"""Programs without which their median says little."""


class CompileLimit:
    """Seconds: a late one ends its worker, and what that had compiled."""

    def __init__(self, gpu: bool = False) -> None:
        self.gpu = gpu
        self._lately = deque[float](maxlen=LATELY)
        self._quickest = dict[int, float]()

    def took(self, operator: int, seconds: float) -> None:
        self._lately.append(seconds)
        self._quickest[operator] = min(seconds, self._quickest.get(operator, math.inf))

    @property
    def most(self) -> float:
        """Whatever is known."""
        return MOST_OF_GPU if self.gpu else MOST

    def of(self, operator: int) -> float:
        """For its next program; the most until one of its programs compiled."""
        if operator not in self._quickest or len(self._lately) < KNOWN:
            return self.most
        usual = max(FACTOR * statistics.median(self._lately), OWN * self._quickest[operator])
        return min(self.most, max(LEAST, usual))

    def together(self, operators: Sequence[int]) -> float:
        """For programs of these in one module: the longest of their limits, and what the others usually take, but for none of
        them more than the most."""
        one, *others = sorted(operators, key=self.of, reverse=True)
        usual = (min(self.most, USUALLY * self._quickest.get(operator, self.most)) for operator in others)
        return self.of(one) + sum(usual)
