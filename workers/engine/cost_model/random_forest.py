"""AdaTune's surrogate: a random forest that says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.cost_model.floor import LOWEST
from workers.engine.ports import Prediction
from workers.engine.space import Features

Array = NDArray[np.float64]
Pair = tuple[Array, Array]

TARGETS = ("log", "speed")
CALIBRATIONS = ("raw", "calibrated")
LEVEL = 0.8
"""Share of new points that the calibrated interval mean +- `Z` x spread is made to hold."""
Z = 1.2816
"""Half the width of a normal distribution's 80 % interval, in standard deviations."""
_FOLDS = 5
COMMON = 4.0
"""Median residuals that are added to every spread. The interval score (Gneiting and Raftery 2007, section 6.2) of what adatune
proposed in two recorded spaces, with other seeds than those of the published figures, was least with 3 and with 4; that of
configurations drawn by chance is 3 % over its least, which it has with a half."""


class RandomForest:
    """Mean and spread over the trees of a random forest (AdaTune's program: 10 trees, max_features 10, or all columns
    where there are fewer).

    `target` is what is learned: "speed", relative to the best with failures at 0, as in the program, or "log", its
    log2, cut at `floor`, where failures lie too. Opinions come out on that scale (`Prediction.scale`), speeds not under the
    floor's.

    `calibration` "raw" is the program's: the standard deviation over the trees. It tells where the trees disagree and
    not how far they are off together, so that an interval of 80 % holds whatever it likes. "calibrated" scales it by
    what happened on points the trees had not seen (split conformal prediction with normalised residuals, Lei et al.
    2018, in 5 folds): to each spread the same multiple of the median residual is added, and the sum is multiplied by the
    factor that makes mean +- Z x spread hold 80 % of the held-out points. Trees that all agree may all be wrong; and the
    spread of ten trees is luck in part, of which an explorer that seeks improvement finds the largest: with half a median
    residual added the interval held 93 % of what it proposed, and 80 % of what was drawn like the measured points. It costs
    five more fits; with fewer than two points a fold the raw spread stands.
    """

    def __init__(
        self,
        seed: int = 0,
        trees: int = 10,
        features: int = 10,
        target: str = "log",
        calibration: str = "calibrated",
        floor: float = -6.0,
    ) -> None:
        if target not in TARGETS or calibration not in CALIBRATIONS:
            raise ValueError(
                f"target {target!r} must be one of {', '.join(TARGETS)}, "
                f"calibration {calibration!r} one of {', '.join(CALIBRATIONS)}"
            )
        if trees < 2 or features < 1 or not LOWEST <= floor < 0:
            raise ValueError(
                f"trees {trees} must be 2 or more, features {features} 1 or more, floor {floor} below 0 and at least {LOWEST:g}"
            )
        self._seed = seed
        self._count = trees
        self._columns = features
        self._speed = target == "speed"
        self._calibrated = calibration == "calibrated"
        self._floor = floor
        self._trees: list[Any] = []
        self._factor, self._least = 1.0, 0.0

    def fit(self, features: Features, speeds: Array) -> None:
        self._trees, self._factor, self._least = [], 1.0, 0.0
        best = float(speeds.max(initial=0.0))
        if best <= 0 or features.shape[1] == 0:
            return  # Only failures, or nothing to tell points apart by: zeros are all there is to say.
        relative = speeds / best
        wanted = relative if self._speed else np.log2(np.maximum(relative, 2.0**self._floor))
        rows = np.ascontiguousarray(features, dtype=np.float32)
        rng = np.random.default_rng(self._seed)
        self._trees = self._grown(rows, wanted, rng)
        if self._calibrated and len(wanted) >= 2 * _FOLDS:
            self._factor, self._least = self._scale(rows, wanted, rng)

    def predict(self, features: Features) -> Prediction:
        if not self._trees or not len(features):
            return Prediction(np.zeros(len(features)), np.zeros(len(features)))
        mean, spread = _over(self._trees, np.ascontiguousarray(features, dtype=np.float32))
        spread = self._factor * (spread + self._least)
        if self._speed:
            return Prediction(np.maximum(mean, 2.0**self._floor), spread, "speed")
        return Prediction(mean, spread)

    def tabled(self, tables: Sequence[Features], fixed: Features) -> None:
        """Its trees are too deep for a table."""

    def _grown(self, rows: Features, wanted: Array, rng: np.random.Generator) -> list[Any]:
        """Fitted trees, each on a bootstrap sample of its own, which comes as weights."""
        from sklearn.tree import DecisionTreeRegressor  # half a second that only this method pays

        n, grown = len(wanted), []
        for _ in range(self._count):
            weights = np.bincount(rng.integers(0, n, n), minlength=n).astype(np.float64)
            tree = DecisionTreeRegressor(
                max_features=min(self._columns, rows.shape[1]), random_state=int(rng.integers(2**31))
            )
            grown.append(tree.fit(rows, wanted, sample_weight=weights, check_input=False).tree_)
        return grown

    def _scale(self, rows: Features, wanted: Array, rng: np.random.Generator) -> tuple[float, float]:
        """(factor, what is added to each spread), from residuals on points that the trees had not seen."""
        n = len(wanted)
        fold = rng.permutation(n) % _FOLDS
        residual, spread = np.zeros(n), np.zeros(n)
        for held in (fold == i for i in range(_FOLDS)):
            mean, spread[held] = _over(self._grown(rows[~held], wanted[~held], rng), rows[held])
            residual[held] = np.abs(wanted[held] - mean)
        least = max(COMMON * float(np.median(residual)), 1e-6)
        # The finite-sample quantile of conformal prediction: the ceil((n + 1) x level)-th smallest.
        place = min(int(np.ceil((n + 1) * LEVEL)), n) - 1
        factor = float(np.sort(residual / (spread + least))[place]) / Z
        return factor or 1.0, least  # where nearly all failed they are foretold exactly, and say nothing of the others


def _over(trees: list[Any], rows: Features) -> Pair:
    """Mean and standard deviation over the trees. Asking the inner trees passes over scikit-learn's checks: 0.1 ms
    instead of 0.8 for the 128 rows of an annealing step."""
    answers = np.stack([tree.predict(rows)[:, 0] for tree in trees])
    return answers.mean(axis=0), answers.std(axis=0)
