"""Names that a run may be given. The engine makes them; the web process must not import it, and a test compares."""

from __future__ import annotations

METHODS = (
    "auto", "dynatune", "chameleon", "adatune", "dynatune-chameleon", "dynatune-adatune",
    "autotvm", "sequential", "round_robin", "random_slots", "linear", "dynamic_round_robin", "dynamic_random",
    "epsilon_greedy", "softmax", "gradient", "random",
    "dynatune-paper", "dynatune-program", "chameleon-paper", "chameleon-program", "adatune-paper",
    "dynatune-chameleon-paper", "dynatune-adatune-paper", "metaschedule",
    "chameleon-sa", "chameleon-ae", "chameleon-sa-as", "adatune-evaluator", "adatune-surrogate", "adatune-contextual",
)  # fmt: skip
PARTS = {
    "scheduler": (
        "dynatune", "dynatune-paper", "epsilon_greedy", "softmax", "gradient",
        "sequential", "round_robin", "random", "linear", "dynamic_round_robin", "dynamic_random",
    ),
    "explorer": ("simulated_annealing", "evolutionary", "metaschedule", "ppo", "random"),
    "sampler": ("greedy", "diverse", "adaptive", "adaptive-program"),
    "cost_model": ("xgboost", "random_forest", "none"),
    "evaluator": ("fixed", "adaptive"),
}  # fmt: skip
"""By role, those that a run may have in place of its method's: not the scheduler that is shown recorded curves."""
