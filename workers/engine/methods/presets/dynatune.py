"""DynaTune (Zhang et al., ICLR 2021)."""

from __future__ import annotations

from workers.engine.evaluator.fixed import PAPER as RUNS_500
from workers.engine.methods.method import Method
from workers.engine.methods.presets.autotvm import ANNEALING, FIRST, PLAN

DYNATUNE = Method(
    name="dynatune",
    scheduler="dynatune",
    explorer="simulated_annealing",
    sampler="greedy",
    cost_model="xgboost",
    evaluator="fixed",
    summary="DynaTune (ICLR 2021): a Bayesian belief of each operator's curve and UCB give the time to the operators "
    "that promise the largest gain; inside an operator boosted trees and annealing. Small slots, short timings.",
)

DYNATUNE_PAPER = Method(
    name="dynatune-paper",
    scheduler="dynatune-paper",
    explorer="simulated_annealing",
    sampler="greedy",
    cost_model="xgboost",
    evaluator="fixed",
    summary="DynaTune with the budgets of the paper and its program: slots of 100 s, plans of 64, 500 runs a "
    "measurement, annealing of 500 steps, ranking trees. Meant for runs of hours.",
    parameters={
        "explorer": ANNEALING,  # as AutoTVM
        "cost_model": {"objective": "rank", "rounds": 100, "subsample": 1.0},  # the scripts' objective; rest as AutoTVM
        "evaluator": RUNS_500,  # the scripts'
        "search": FIRST,
        # Slots of the order of 100 s (5.1; program 20 s); warm-up until an operator has a valid one (Algorithm 1).
        "rhythm": {"plan": PLAN, "warm_up": 64, "slot_seconds": 100.0},
    },
)

PRESETS = (DYNATUNE, DYNATUNE_PAPER)
