"""Gradient-boosted trees on knob features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.cost_model.floor import LOWEST
from workers.engine.cost_model.tabled_trees import DEPTH, TabledTrees
from workers.engine.ports import Prediction
from workers.engine.space import Choices, Features
from workers.without import without

if TYPE_CHECKING:
    import xgboost as xgb

OBJECTIVES = {"reg": "reg:squarederror", "rank": "rank:pairwise"}
TARGETS = ("log", "speed")


def library() -> Any:
    """XGBoost, loaded by who uses it: nobody pays it who only names methods."""
    with without("sklearn"):  # for its estimators, which are not used here: half of what the import takes
        import xgboost
    return xgboost


class XGBoost:
    """AutoTVM's cost model: depth 3, gamma 1e-4, minimum child weight 1, eta 0.3, lambda 1 (v0.19).

    `objective` is "reg" (Chameleon, Table 8) or "rank" (DynaTune's and AdaTune's scripts). `target` is what "reg"
    learns: "speed", normalised by the best with failures at 0, as in AutoTVM, or "log", its log2, cut at `floor`,
    where failures lie too. Opinions come out as log2 speeds relative to the best either way; a rank score is brought
    there by a straight line through the points of the fit. Trees give no spread: it is zero, which means none is
    known.

    The method `metaschedule` has the numbers of TVM's XGBModel: deeper trees on normalised speed in which a fast program
    weighs more (`weighted`: by its speed).

    The defaults `subsample` below 1 (off in AutoTVM) and "log" came out first on a synthetic landscape, but within its
    noise: best speed after 96 trials, 40 seeds, "log" 1356 +-8 % with 0.7 and 1161 +-7 % with 1, "speed" 1154 +-7 %,
    "rank" (top pairs) 1178 +-7 %.
    """

    def __init__(
        self,
        seed: int = 0,
        objective: str = "reg",
        target: str = "log",
        rounds: int = 50,
        floor: float = -6.0,
        subsample: float = 0.7,
        depth: int = 3,
        gamma: float = 1e-4,
        child: float = 1.0,
        eta: float = 0.3,
        weighted: bool = False,
    ) -> None:
        if objective not in OBJECTIVES or target not in TARGETS or rounds < 1 or not LOWEST <= floor < 0:
            legal = f"objective one of {', '.join(OBJECTIVES)}; target one of {', '.join(TARGETS)}"
            raise ValueError(f"{legal}; rounds at least 1; floor below 0 and at least {LOWEST:g}")
        if weighted and objective == "rank":
            raise ValueError(
                "weighted is of single points, which the objective rank compares with each other; leave one out"
            )
        if depth < 0 or not (0 < eta <= 1 and 0 < subsample <= 1 and gamma >= 0 and child >= 0):
            raise ValueError(
                f"depth {depth} starts at 0, which is no limit; eta {eta} and subsample {subsample} are over 0 and at most 1, "
                f"gamma {gamma} and child {child} start at 0"
            )
        self._ranks = objective == "rank"
        self._speed = target == "speed" and not self._ranks
        self._rounds = rounds
        self._floor, self._weighted = floor, weighted
        self._booster: xgb.Booster | None = None
        self._line = (1.0, 0.0)
        self._depth = depth
        self._parameters = {
            "objective": OBJECTIVES[objective],
            "max_depth": depth,
            "gamma": gamma,
            "min_child_weight": child,
            "eta": eta,
            "lambda": 1.0,
            "subsample": subsample,
            "tree_method": "hist",
            "nthread": 1,
            "seed": seed,
            "verbosity": 0,
        }
        if self._ranks:
            # xgboost 3 compares pairs at the top only; AutoTVM's version drew them from everywhere, and the order of
            # unseen points is better so (Spearman 0.88 against 0.51 after 400 points).
            self._parameters |= {"lambdarank_pair_method": "mean", "lambdarank_num_pair_per_sample": 16}

    def fit(self, features: Features, speeds: NDArray[np.float64]) -> None:
        self._booster = None
        best = float(speeds.max(initial=0.0))
        if best <= 0 or features.shape[1] == 0:
            return  # Only failures, or nothing to tell points apart by: zeros are all there is to say.
        xgb = library()
        logs = np.log2(np.maximum(speeds / best, 2.0**self._floor))
        matrix = xgb.DMatrix(features, label=speeds / best if self._speed else logs, nthread=1)
        if self._weighted:
            matrix.set_weight(speeds / best)
        if self._ranks:
            matrix.set_info(qid=np.zeros(len(speeds), dtype=np.uint32))
        self._booster = xgb.train(self._parameters, matrix, self._rounds)
        if self._ranks:
            self._line = _line(self._booster.inplace_predict(features), logs)

    def predict(self, features: Features) -> Prediction:
        if self._booster is None or not len(features):
            return Prediction(np.zeros(len(features)), np.zeros(len(features)))
        return self._opinion(self._booster.inplace_predict(features, validate_features=False).astype(np.float64))

    def tabled(self, tables: Sequence[Features], fixed: Features) -> Callable[[Choices], Prediction] | None:
        if self._booster is None or not 0 < self._depth <= DEPTH:
            return None
        trees = TabledTrees(self._booster, tables, fixed)
        return lambda choices: self._opinion(trees(choices))

    def _opinion(self, raw: NDArray[np.float64]) -> Prediction:
        if self._speed:
            raw = np.log2(np.maximum(raw, 2.0**self._floor))
        slope, offset = self._line
        return Prediction(slope * raw + offset, np.zeros(len(raw)))


def _line(scores: NDArray[np.float32], logs: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and offset of the least-squares line from scores to logs; never falling, so that the order is kept."""
    centred = scores.astype(np.float64) - scores.mean(dtype=np.float64)
    variance = float(centred @ centred)
    slope = max(float(centred @ logs) / variance, 1e-6) if variance > 0 else 0.0
    return slope, float(logs.mean() - slope * scores.mean(dtype=np.float64))
