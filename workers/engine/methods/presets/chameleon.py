"""Chameleon (Ahn et al., ICLR 2020): Adaptive Exploration (AE) and Adaptive Sampling (AS), and its ablations (4.1, 4.2).

An ablation changes AutoTVM (SA, simulated annealing and greedy sampling) by the part it is named after. Adaptive Sampling
is given a plan of 64 and takes fewer of it: Table 7 has 64 as the most that an iteration plans, and the program clusters
as many candidates. In the paper all that is measured was sampled (3.1, Algorithm 1): the first plan too, and nothing of
later ones is random; the program measures a random plan first, as AutoTVM does, and 3 configurations of each
later one are drawn by chance, also where the sampler takes 16 (`AdaptiveProgram`). In the published program agent and
sampling do not meet: its agent's tuner takes no sampler, and only annealing's has one. The 16 iterations are the paper's:
`chameleon-paper` and `-program` end after them, the ablations measure as long as AutoTVM does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workers.engine.explorer.ppo import PAPER as PPO_PAPER
from workers.engine.explorer.ppo import PROGRAM as PPO_PROGRAM
from workers.engine.methods.method import Method
from workers.engine.methods.presets.autotvm import AUTOTVM, EAGER, FIRST, ONE
from workers.engine.sampler.adaptive import PAPER as SAMPLING_PAPER

SAMPLED: dict[str, Any] = {"sampler": SAMPLING_PAPER, "search": {**ONE, "first": 0, "epsilon": 0.0}}
ITERATIONS: dict[str, Any] = {"rhythm": {**EAGER, "slots": 16}}
"""Table 7: iterations of the optimisation of an operator; AutoTVM's plans in as many are the 1,000 measurements of Table 8."""


def _ablation(name: str, explorer: str, sampler: str, changed: dict[str, Any]) -> Method:
    parameters = {**AUTOTVM.parameters, **changed}
    return replace(AUTOTVM, name=name, explorer=explorer, sampler=sampler, parameters=parameters)


CHAMELEON = Method(
    name="chameleon",
    scheduler="sequential",  # as AutoTVM
    explorer="ppo",  # 3.2, with the numbers that learn fastest in a fifth of a second
    sampler="adaptive",  # 3.3, with the numbers that measured best
    cost_model="xgboost",
    evaluator="fixed",
    parameters={
        "search": {"pool": 8.0, "first": 16},
        "rhythm": {"plan": 32},  # an upper limit: the sampler mostly takes 16
    },
)

CHAMELEON_PAPER = _ablation(  # AE + AS
    "chameleon-paper", "ppo", "adaptive", {"explorer": PPO_PAPER, **SAMPLED, **ITERATIONS}
)

CHAMELEON_PROGRAM = _ablation(
    "chameleon-program",
    "ppo",
    "adaptive-program",
    {"explorer": PPO_PROGRAM, "search": {**FIRST, "epsilon": 0.0}, **ITERATIONS},  # the sampler leaves some to chance
)

PRESETS = (
    CHAMELEON,
    CHAMELEON_PAPER,
    CHAMELEON_PROGRAM,
    replace(AUTOTVM, name="chameleon-sa"),  # SA (4.1): the same as autotvm
    _ablation("chameleon-ae", "ppo", "greedy", {"explorer": PPO_PAPER}),  # AE (4.1)
    _ablation("chameleon-sa-as", "simulated_annealing", "adaptive", SAMPLED),  # SA + AS (4.2)
)
