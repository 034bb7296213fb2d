"""AdaTune (Li et al., NeurIPS 2020): adaptive evaluator, surrogate with uncertainty, contextual optimizer; and
methods that have one or two of them.

`adatune-surrogate` has evaluator and surrogate, `adatune-contextual` surrogate and optimizer, each AdaTune but for the third.
`adatune-evaluator` has the evaluator alone, on the AutoTVM of Chameleon's Table 8 (plans of 64, trees on speed), not on that of
AdaTune's script (plans of 32, ranking trees)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workers.engine.evaluator.adaptive import PAPER as ADAPTIVE_PAPER
from workers.engine.evaluator.fixed import PAPER as RUNS_500
from workers.engine.methods.method import Method
from workers.engine.methods.presets.autotvm import ANNEALING, AUTOTVM, ONE

_PLAN = 32
"""Program: plan size."""
_IMPROVEMENT: dict[str, Any] = {"acquisition": "expected_improvement"}

ADATUNE = Method(
    name="adatune",
    scheduler="sequential",  # as AutoTVM
    explorer="simulated_annealing",
    sampler="greedy",
    cost_model="random_forest",  # program: 10 trees, 10 columns; calibrated on log2 speeds: the product's
    evaluator="adaptive",  # batches by time, hopeless programs cut: the product's
    parameters={
        "explorer": {"chains": 64},  # twice the plan of 32 (program)
        "search": {**_IMPROVEMENT, "contextual": True, "confirm": 0.03},
        "rhythm": {"plan": _PLAN},
    },
)

ADATUNE_PAPER = replace(
    ADATUNE,
    name="adatune-paper",
    parameters={
        # Program: twice the plan, by the expected improvement of what its forest learns, FLOP/s as they are.
        "explorer": {**ANNEALING, "chains": 64, "differences": "flops"},
        "cost_model": {"target": "speed", "calibration": "raw"},  # program
        "evaluator": ADAPTIVE_PAPER,  # program: batches of 50 of 500 runs, 10 %
        "search": {**ONE, "first": _PLAN // 2, **_IMPROVEMENT, "contextual": True},  # program: the first plan is random
        "rhythm": {"plan": _PLAN, "warm_up": 1},
    },
)

PRESETS = (
    ADATUNE,
    ADATUNE_PAPER,
    replace(
        AUTOTVM,
        name="adatune-evaluator",
        evaluator="adaptive",
        parameters={**AUTOTVM.parameters, "evaluator": ADAPTIVE_PAPER},
    ),
    replace(
        ADATUNE_PAPER,
        name="adatune-surrogate",
        parameters={
            **ADATUNE_PAPER.parameters,
            "search": {**ONE, "first": _PLAN // 2, **_IMPROVEMENT, "epsilon": 0.05},
        },
    ),
    replace(
        ADATUNE_PAPER,
        name="adatune-contextual",
        evaluator="fixed",
        parameters={**ADATUNE_PAPER.parameters, "evaluator": RUNS_500},
    ),
)
