"""Whether this is a moment to time programs in: a small program of known length feels what others take of the cores."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import tvm
from tvm.script import tirx as T

from workers.tvm_backend.nursery import LATELY

Found = TypeVar("Found")

VECTORS, LANES, SWEEPS = 64, 16, 1500
"""Of each thread, 4 KiB in its first-level cache, and how often it goes over them: 0.05 to 0.1 ms that need nothing but the
core, and all of it: where a virtual core is half of one, they take twice as long beside somebody else's work."""
SLOW = 1.4
"""Times what it usually takes. On machines of two halves of a core it is 1.8 to 2.1 while others work there, for 50 to 500
ms, else under 1.1."""
PAUSE = 0.005
"""Seconds between two of them."""
FIRST, REST = 8, 0.03
"""Looks before anything is known, and the seconds that the machine rests before each: two virtual cores on halves of one core
stay there while both are at work, and what is found there is half of what is usual."""


class Moment:
    """Times programs in moments in which the machine is as fast as it usually is."""

    def __init__(self, target: tvm.target.Target, threads: int) -> None:
        self._program = tvm.tirx.build(_program(threads), target=target)
        self._entry = self._program["main"]
        self._numbers = tvm.runtime.tensor(np.ones((threads, VECTORS, LANES), np.float32))
        self.lately = deque[float](maxlen=LATELY)
        self.looks: list[float] = []
        """Seconds of those that the last timing took."""

    def of(self, timing: Callable[[], Found], patience: float) -> tuple[Found, float]:
        """What `timing` gives where the moment was good before and after it, and the seconds that were lost for that. It is
        asked again after a bad one, but not once `patience` seconds are over."""
        began = time.perf_counter()
        end = began + patience
        while True:
            while not self._good() and time.perf_counter() < end:
                time.sleep(PAUSE)
            last = time.perf_counter()
            found = timing()
            if time.perf_counter() >= end or self._good():
                return found, last - began

    def acquainted(self, lately: Sequence[float]) -> float:
        """The seconds that it takes to know what is usual here, where it knows nothing yet and others, who saw `lately`, do not
        either. `looks` begin with those."""
        began, self.looks = time.perf_counter(), []
        self.lately.extend([] if self.lately else lately)
        for _ in range(0 if self.lately else FIRST):
            time.sleep(REST)
            self._good()
        return time.perf_counter() - began

    def _good(self) -> bool:
        taken = min(self._taken(), self._taken())  # the first one may wake threads
        self.lately.append(taken)
        self.looks.append(taken)
        return taken <= SLOW * float(np.quantile(self.lately, 0.25))

    def _taken(self) -> float:
        began = time.perf_counter()
        self._entry(self._numbers)
        return time.perf_counter() - began


def _program(threads: int) -> tvm.IRModule:
    lines = [
        "@T.prim_func(s_tir=True)",
        f"def main(held: T.Buffer(({threads}, {VECTORS}, {LANES}), 'float32')):",
        "    T.func_attr({'tirx.noalias': True})",
        f"    for thread in T.parallel({threads}):",
        f"        for sweep in range({SWEEPS}):",
        f"            for vector in range({VECTORS}):",
        f"                for lane in T.vectorized({LANES}):",
        "                    held[thread, vector, lane] = held[thread, vector, lane] * T.float32(0.5) + T.float32(0.5)",
    ]
    return tvm.IRModule({"main": tvm.script.from_source("\n".join(lines), {"T": T})})
