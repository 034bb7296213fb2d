"""No opinion: what random search uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workers.engine.ports import Prediction
from workers.engine.space import Features


class Constant:
    """Predicts zeros whatever it was shown."""

    def __init__(self, seed: int = 0) -> None:
        """`seed` is what every cost model gets; nothing is random here."""

    def fit(self, features: Features, speeds: NDArray[np.float64]) -> None:
        pass

    def predict(self, features: Features) -> Prediction:
        return Prediction(np.zeros(len(features)), np.zeros(len(features)))

    def tabled(self, tables: Sequence[Features], fixed: Features) -> None:
        """Nothing is looked up."""
