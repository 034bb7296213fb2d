"""Tiled loops: of each, an array (n, parts) of the factors that n configurations give its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


def product(tiles: Sequence[Counts], part: int) -> Counts:
    """Of one part of several loops, shape (n,); 1 for no loops."""
    return np.prod([tile[:, part] for tile in tiles], axis=0) if tiles else np.ones(())
