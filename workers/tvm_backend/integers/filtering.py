"""Winograd's F(2 x 2, 3 x 3) of whole numbers, exactly.

Its matrices hold 0, 1, -1 and halves: with weights times 4 every step is whole, and a shift takes the 4 off what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import relax

from workers.tvm_backend.integers.grouping import PAIRS, ROOM
from workers.tvm_backend.winograd.filtering import F2, SHORTS, chosen, weights_transformed
from workers.tvm_backend.winograd.rewriting import convolution_of
from workers.tvm_backend.winograd.transform import Transform

SHIFT = 2
"""Of 4, which is 2 for each side."""


@dataclass(frozen=True)
class Filtered:
    """How a convolution is filtered: transforms of its input and of its products, and weights (places, channels, filters)."""

    input: Transform
    output: Transform
    weights: NDArray[np.float32]


def filtered(call: relax.Call, weights: NDArray[Any], largest: float, lanes: int, balance: float) -> Filtered | None:
    """None where it does not pay, or where numbers may not fit. `largest`: of what is read; `lanes` of float32."""
    convolution = convolution_of(call, SHORTS)
    if convolution is None or chosen(convolution, 2 * lanes, balance, (F2,)) is None:
        return None
    transformed = weights_transformed(weights, F2, times=2.0)
    read = largest * float(np.abs(F2.data).sum(axis=1).max()) ** 2
    sums = read * np.abs(transformed, dtype=np.float64).sum(axis=1).reshape(F2.inputs, F2.inputs, -1)
    sides = np.abs(F2.product)
    most = np.einsum("ay,yxf,bx->abf", sides, sums, sides).max()
    if max(read, np.abs(transformed).max()) > PAIRS.data[1] or most > ROOM:
        return None
    return Filtered(Transform(convolution, F2, 2 * lanes), Transform(convolution, F2, lanes, SHIFT), transformed)
