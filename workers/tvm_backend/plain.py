"""What an operator computes without a schedule, which every program of its must compute too."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray

from workers.tvm_backend.arguments import whole_numbers
from workers.tvm_backend.lowering import PIPELINE
from workers.tvm_backend.programs import COMMON_LEFT, Workload, argument_tensors, quickly

Array = NDArray[Any]

CLOSE = 1e-4
"""Of the largest value: sums in another order differ by a hundredth of it."""
ROUNDED = 2.0**-10
"""Of a number of 16 bits itself: sums in two orders may be rounded to either of two neighbours."""
STRAY = 1e-4
"""Share of the numbers that may be others: what is rounded, or compared, falls either way where sums differ at all."""


class Plain:
    """The reference of one operator, on one draw of tensors."""

    def __init__(self, workload: Workload) -> None:
        shapes, random = argument_tensors(workload.mod), np.random.default_rng(0)
        self._workload = workload
        self._given = [_drawn(random, shape, dtype, workload.below) for shape, dtype in shapes]
        for place in workload.divisors:
            self._given[place] = np.ones_like(self._given[place])
        after = self._run(workload.mod)
        self._wanted = {
            p: a for p, (a, b) in enumerate(zip(after, self._given, strict=True)) if not np.array_equal(a, b)
        }

    def computes(self, sketch: int, choices: tuple[int, ...]) -> bool:
        """Whether a configuration's program does, built with the packing of its weights, which those that are timed leave out.
        Raises Invalid, and what TVM raises."""
        found = self._run(self._workload.schedule(sketch, choices).mod, PIPELINE)
        return all(_close(wanted, found[place]) for place, wanted in self._wanted.items())

    def _run(self, mod: tvm.IRModule, pipeline: str = "default") -> list[Array]:
        """What its tensors hold afterwards, by TVM's pipeline unless by the library's."""
        tensors = [tvm.runtime.tensor(array) for array in self._given]
        with self._workload.target, tvm.transform.PassContext(config=COMMON_LEFT if pipeline == PIPELINE else {}):
            tvm.tirx.build(mod, target=quickly(self._workload.target), pipeline=pipeline)["main"](*tensors)
        return [tensor.numpy() for tensor in tensors]


def _drawn(random: np.random.Generator, shape: tuple[int, ...], dtype: str, below: int) -> Array:
    """Numbers between 0 and 1, which logarithms and roots take, and whole ones `below`, which may be places to read from."""
    if "float" in dtype:
        return np.asarray(random.random(shape)).astype(dtype)
    return whole_numbers(random, shape, dtype, 2 if dtype == "bool" else below)


def _close(wanted: Array, found: Array) -> bool:
    if wanted.dtype.kind != "f":
        return bool(np.mean(wanted != found) <= STRAY)
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    wide = np.float32 if wanted.dtype.itemsize < 4 else wanted.dtype
    size, off = (
        np.abs(wanted, dtype=wide),
        np.abs(wanted.astype(wide) - found, where=finite, out=np.zeros_like(wanted, wide)),
    )
    own = ROUNDED * size if wide != wanted.dtype else 0.0
    return bool(np.mean(off > CLOSE * size[finite].max(initial=0.0) + own) <= STRAY)
