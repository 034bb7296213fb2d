"""Names that a run may be given. The engine makes them; the web process must not import it, and a test compares."""

from __future__ import annotations

METHODS = (
    "auto", "dynatune", "chameleon", "adatune", "dynatune-chameleon", "dynatune-adatune",
    "autotvm", "sequential", "round_robin", "random_slots", "linear", "dynamic_round_robin", "dynamic_random",
    "epsilon_greedy", "softmax", "gradient", "random",
    "dynatune-paper", "chameleon-paper", "adatune-paper", "metaschedule",
    "chameleon-sa", "chameleon-ae", "chameleon-sa-as", "adatune-evaluator", "adatune-surrogate", "adatune-contextual",
)  # fmt: skip
ROLES = ("scheduler", "explorer", "sampler", "cost_model", "evaluator")
LAYOUTS = ("auto", "NHWC", "NCHW")
