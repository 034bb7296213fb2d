"""Cost models by name. A factory takes a seed and its parameters; a fit depends on them and the given points only."""

from __future__ import annotations

from collections.abc import Callable

from workers.engine.cost_model.constant import Constant
from workers.engine.cost_model.random_forest import RandomForest
from workers.engine.cost_model.xgboost import XGBoost
from workers.engine.ports import CostModel

COST_MODELS: dict[str, Callable[..., CostModel]] = {
    "xgboost": XGBoost,
    "random_forest": RandomForest,
    "none": Constant,
}

__all__ = ["COST_MODELS", "Constant", "RandomForest", "XGBoost"]
