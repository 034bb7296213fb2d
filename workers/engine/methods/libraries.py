"""Libraries that parts load when they are first used: half a second to three each, in which a run builds and measures nothing.
Who loads them before it begins loses none of its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from workers.engine.cost_model import xgboost
from workers.messages.effects import BELIEVING

Loader = Callable[[], object]


def _modules(*names: str) -> Loader:
    return lambda: [import_module(name) for name in names]


_BELIEF = _modules("scipy.special", "scipy.optimize")
LOADERS: Mapping[str, Mapping[str, Loader]] = {
    # The first: XGBoost takes half as long where scikit-learn is not there yet.
    "cost_model": {"xgboost": xgboost.library, "random_forest": _modules("sklearn.tree")},
    "scheduler": dict.fromkeys(BELIEVING, _BELIEF),
    "explorer": {"ppo": _modules("workers.engine.explorer.ppo.agent")},
    "sampler": {"adaptive": _modules("sklearn.cluster", "threadpoolctl")},
    "acquisition": {"expected_improvement": _modules("scipy.special")},
}
"""By role and name of a part; a part that is not there loads nothing."""


def load(parts: Mapping[str, str]) -> None:
    """What these parts, names by role, will ask for."""
    for role, loaders in LOADERS.items():
        if (loader := loaders.get(parts[role])) is not None:
            loader()
