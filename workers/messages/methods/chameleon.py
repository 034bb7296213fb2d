"""Chameleon (Ahn et al., ICLR 2020): Adaptive Exploration (AE) and Adaptive Sampling (AS), and its ablations (4.1, 4.2).

An ablation changes AutoTVM (SA, simulated annealing and greedy sampling) by the part it is named after. Adaptive Sampling
is given a plan of 64 and takes fewer of it: Table 7 has 64 as the most that an iteration plans, and the program clusters
as many candidates. In the paper all that is measured was sampled (3.1, Algorithm 1): the first plan too, and nothing of
later ones is random; the program measures a random plan first, as AutoTVM does, and 3 configurations of each
later one are drawn by chance, also where the sampler takes 16 (the engine's `AdaptiveProgram`). In the published program
agent and sampling do not meet: its agent's tuner takes no sampler, and only annealing's has one. Its agent also takes one
draw of 32 steps an epoch, its two nets share nothing, and its critic learns the estimates as they are, not as shares of the
best. The 16 iterations are the paper's: `chameleon-paper` and `-program` end after them, the ablations measure as long as
AutoTVM does.
"""

from __future__ import annotations

from workers.messages.methods.autotvm import (
    ADDITION,
    ANNEALING,
    AUTOTVM,
    BY_SPEED,
    EAGER,
    FIRST,
    ONE,
    REGRESSION,
    RUNS_500,
    SKETCHES,
)
from workers.messages.methods.preset import Preset, numbers, parts

PAPER = "Chameleon (Ahn et al., ICLR 2020)"

AGENT = (
    *numbers("explorer", "Chameleon, Tables 7 and 9", steps=500, rate=1e-3, entropy=0.1),
    *numbers("explorer", "PPO (Schulman et al.) and Chameleon's program: in nats, over all knobs", spread="action"),
    *numbers("explorer", "PPO (Schulman et al.), which Chameleon, 3.4, takes: of the whole action", ratio="joint"),
    *numbers("explorer", "Chameleon, 3.2", reward="speed"),
    *numbers("explorer", "not in the paper: what fits into a second a search", minibatch=512),
    *numbers("explorer", ADDITION, elite=0.0, exhaustive=False),
)
AGENT_OF_THE_PROGRAM = (
    *(number for number in AGENT if number.name not in ("entropy", "ratio")),
    *numbers("explorer", "Chameleon's program; 0.3 in Table 9", clip=0.2),
    *numbers("explorer", "Chameleon's program; 0.1 in Table 9", entropy=0.3),
    *numbers("explorer", "Chameleon's program: a ratio for each knob", ratio="knob"),
    *numbers(
        "explorer", "Chameleon's program: an episode is over when so many of the knobs stay or hit a bound", still=0.75
    ),
)
CLUSTERS = numbers("sampler", "Chameleon, 3.3, Algorithm 1", mode="literal", columns="knobs", snap="space")
SAMPLED = (
    *ONE,
    *numbers("search", "Chameleon, 3.1: the first plan is sampled too; random in its program", first=0),
    *numbers("search", "Chameleon, Algorithm 1: all that is measured was sampled", epsilon=0.0),
)
ITERATIONS = numbers("rhythm", "Chameleon, Table 7: iterations of an operator", slots=16)
"""AutoTVM's plans in as many are the 1,000 measurements of Table 8."""

CHAMELEON = Preset(
    "chameleon",
    "Chameleon",
    "An agent learns which knobs to turn, and measures one configuration of each kind it finds.",
    f"{PAPER}, 3.2 and 3.3",
    parts("sequential", "ppo", "adaptive", "xgboost", "fixed"),
    (
        *numbers("search", "eight candidates for each place in a plan: measured", pool=8.0),
        *numbers("search", "product: what a plan mostly measures", first=16),
        *numbers("rhythm", "product: an upper limit, of which the sampler mostly takes half", plan=32),
    ),
    more="One operator after the other. Learning costs time too, and it is on the clock.",
)
CHAMELEON_PAPER = Preset(
    "chameleon-paper",
    "Chameleon as published",
    "With the walks and timings of the publication. Takes hours.",
    f"{PAPER}, 3.2, 3.3, Tables 7 to 9",
    CHAMELEON.parts,
    (*AGENT, *CLUSTERS, *REGRESSION, *RUNS_500, *SAMPLED, *EAGER, *ITERATIONS),
    more=f"Both parts together: AE + AS of the ablations. {SKETCHES}",
)
CHAMELEON_PROGRAM = Preset(
    "chameleon-program",
    "Chameleon as programmed",
    "With walks that end early and clusters of two knobs, as in the authors’ program. Takes hours.",
    f"{PAPER}; the authors' program",
    {**CHAMELEON.parts, "sampler": "adaptive-program"},
    (
        *AGENT_OF_THE_PROGRAM,
        *REGRESSION,
        *RUNS_500,
        *FIRST,
        *numbers("search", "Chameleon's program: its sampler leaves some of a plan to chance", epsilon=0.0),
        *EAGER,
        *ITERATIONS,
    ),
    more="Where program and publication differ, this is the program: 16 clusters or more in place of 9, configurations "
    "made up of what candidates have, and an agent that is kept curious. The program also learns after every episode, "
    f"and never has agent and sampling work together; this does not, and does. {SKETCHES}",
)

ABLATIONS = (
    Preset("chameleon-sa", "Chameleon: neither part", "Annealing and greedy sampling: the same as AutoTVM. Takes hours.",
           f"{PAPER}, 4.1: SA", AUTOTVM.parts, AUTOTVM.numbers),
    Preset("chameleon-ae", "Chameleon: the agent alone", "AutoTVM with the agent in place of annealing. Takes hours.",
           f"{PAPER}, 4.1: AE", {**AUTOTVM.parts, "explorer": "ppo"},
           (*AGENT, *REGRESSION, *RUNS_500, *FIRST, *EAGER)),
    Preset("chameleon-sa-as", "Chameleon: the sampling alone", "AutoTVM that measures one configuration of each kind. Takes "
           "hours.", f"{PAPER}, 4.2: SA + AS", {**AUTOTVM.parts, "sampler": "adaptive"},
           (*ANNEALING, *BY_SPEED, *CLUSTERS, *REGRESSION, *RUNS_500, *SAMPLED, *EAGER)),
)  # fmt: skip
