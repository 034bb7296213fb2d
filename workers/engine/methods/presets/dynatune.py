"""DynaTune (Zhang et al., ICLR 2021)."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.evaluator.adaptive import PAPER as ADAPTIVE_PAPER
from workers.engine.evaluator.fixed import PAPER as RUNS_500
from workers.engine.methods.method import Method
from workers.engine.methods.presets.autotvm import ANNEALING, FIRST, ONE, PLAN

DYNATUNE = Method(
    name="dynatune",
    scheduler="dynatune",
    explorer="simulated_annealing",
    sampler="greedy",
    cost_model="xgboost",
    evaluator="fixed",
)

DYNATUNE_PAPER = replace(
    DYNATUNE,
    name="dynatune-paper",
    scheduler="dynatune-paper",
    parameters={
        "explorer": ANNEALING,  # as AutoTVM; by the speeds that a line makes of what ranking trees say
        "cost_model": {"objective": "rank", "rounds": 100, "subsample": 1.0},  # the scripts' objective; rest as AutoTVM
        "evaluator": RUNS_500,  # as AutoTVM; the paper does not say
        "search": FIRST,
        # Slots of the order of 100 s (5.1; program 20 s); warm-up until an operator has a valid one (5).
        "rhythm": {"plan": PLAN, "warm_up": 64, "slot_seconds": 100.0},
    },
)

_PLAN = 32
"""Program: plan size."""

DYNATUNE_PROGRAM = replace(
    DYNATUNE_PAPER,
    name="dynatune-program",
    evaluator="adaptive",
    parameters={
        **DYNATUNE_PAPER.parameters,
        # UCB1Selector takes C = 2 of networks of any latency; the script stops an operator early after 50.
        "scheduler": {"score": "speed", "prior": False, "pieces": False, "c_fast": 2.0, "patience": 50},
        "evaluator": {**ADAPTIVE_PAPER, "extremes": True},  # the script's: AdaTune's, whose extremes count here
        "search": {**ONE, "first": _PLAN // 2, "ahead": _PLAN},  # the first plan is random, as AutoTVM's
        # The clock is asked before every few of a plan: as many as there are cores in the program, so many here.
        "rhythm": {"plan": 8, "warm_up": _PLAN, "slot_seconds": 20.0},
    },
)

PRESETS = (DYNATUNE, DYNATUNE_PAPER, DYNATUNE_PROGRAM)
