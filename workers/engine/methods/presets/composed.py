"""Parts of two papers in one method: DynaTune gives the slots, and its operators are searched as another paper does."""

from __future__ import annotations

from workers.engine.methods.method import Method

PRESETS = (
    Method(
        name="dynatune-chameleon",
        scheduler="dynatune",
        explorer="simulated_annealing",
        sampler="adaptive",
        cost_model="xgboost",
        evaluator="fixed",
        summary="DynaTune's scheduler over Chameleon's adaptive sampling: slots to the operators that promise most, and "
        "one configuration a cluster of what annealing finds.",
        parameters={
            "search": {"pool": 8.0},
            "rhythm": {"plan": 32},  # an upper limit: the sampler mostly takes 16
        },
    ),
    Method(
        name="dynatune-adatune",
        scheduler="dynatune",
        explorer="simulated_annealing",
        sampler="greedy",
        cost_model="random_forest",
        evaluator="adaptive",
        summary="DynaTune's scheduler over AdaTune's evaluator and forest: slots to the operators that promise most, "
        "timings that end when they agree.",
    ),
)
