"""Seeded inputs: the same seed gives the same arrays to every way of running a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.networks.inspect import Inspection

Array = NDArray[Any]

INDICES = 2
"""Integers are drawn below this unless a vocabulary is known: small enough for any embedding or axis."""


def seeded_inputs(
    inspection: Inspection,
    seed: int,
    shapes: Mapping[str, Sequence[int]] | None = None,
    vocabulary: Mapping[str, int] | None = None,
    scale: float = 1.0,
    positive: bool = False,
) -> dict[str, Array]:
    """Arrays by input name: standard normal floats times `scale`, or their absolute values (`positive`), integers below
    `vocabulary[name]` (2 unless given), coins for bool.

    Integers of 8 and 16 bits take all their values: they are quantised numbers, indices have 32 bits or 64.

    `shapes` gives the dynamic inputs their sizes. Raises ValueError naming the input whose shape stays unknown.
    """
    random = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for port in inspection.inputs:
        shape = (shapes or {}).get(port.name, port.shape)
        if shape is None or not all(isinstance(size, int) for size in shape):
            raise ValueError(f"input {port.name}: its shape {shape} is not static; give a shape for it")
        sizes = [int(size) for size in shape if size is not None]
        below = (vocabulary or {}).get(port.name, INDICES)
        drawn = _draw(random, port.name, np.dtype(port.dtype), sizes, below)
        if drawn.dtype.kind == "f":
            drawn = np.asarray((np.abs(drawn) if positive else drawn) * scale, drawn.dtype)
        arrays[port.name] = drawn
    return arrays


def _draw(random: np.random.Generator, name: str, dtype: np.dtype[Any], sizes: list[int], below: int) -> Array:
    if dtype.kind == "f":
        return np.asarray(random.standard_normal(sizes)).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, sizes, dtype, endpoint=True)
    if dtype.kind in "iu":
        return np.asarray(random.integers(0, max(1, below), sizes)).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(random.integers(0, 2, sizes)).astype(dtype)
    raise ValueError(f"input {name}: no values can be drawn for {dtype}; use float, integer or bool inputs")
