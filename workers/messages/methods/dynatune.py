"""DynaTune (Zhang et al., ICLR 2021)."""

from __future__ import annotations

from workers.messages.methods.adatune import batches
from workers.messages.methods.autotvm import ANNEALING, FIRST, RUNS_500, SKETCHES, WHOLE, first_plan
from workers.messages.methods.preset import Number, Preset, numbers, parts

PAPER = "DynaTune (Zhang et al., ICLR 2021)"

RANKING = (*numbers("cost_model", "DynaTune's scripts", objective="rank"), *WHOLE)


def warm_up(plan: int) -> tuple[Number, ...]:
    return numbers("rhythm", "DynaTune, 5: until each operator has a valid one; a limit of one plan", warm_up=plan)


SLOTS = numbers("rhythm", "DynaTune, 5: slots of the order of 100 s", slot_seconds=100.0)

DYNATUNE = Preset(
    "dynatune",
    "DynaTune",
    "Predicts how much faster each operator can still get, and gives the next slot of time to the one that promises most.",
    f"{PAPER}, Algorithm 1",
    parts("dynatune", "simulated_annealing", "greedy", "xgboost", "fixed"),
    more="A curve is fitted to what each operator has won so far, and its uncertainty sampled. Slots of one small "
    "plan and short timings, for runs of minutes.",
)
DYNATUNE_PAPER = Preset(
    "dynatune-paper",
    "DynaTune as published",
    "With the slots and timings of the publication. Takes hours.",
    f"{PAPER}, 4 and 5",
    {**DYNATUNE.parts, "scheduler": "dynatune-paper"},
    (
        *ANNEALING,
        *RANKING,
        *RUNS_500,  # as AutoTVM; the paper does not say
        *FIRST,
        *numbers("rhythm", "as AutoTVM (Chameleon, Table 8)", plan=64),
        *warm_up(64),
        *SLOTS,
    ),
    more="Its trees rank, and their walk forgives by the logarithm of speed; AutoTVM’s, and the AutoTVM with ranking trees "
    f"that AdaTune is compared with, forgive by speed. {SKETCHES}",
)
DYNATUNE_PROGRAM = Preset(
    "dynatune-program",
    "DynaTune as programmed",
    "Slots to the operators that will be fastest themselves, as the authors’ program gives them. Takes hours.",
    f"{PAPER}; the authors' program",
    {**DYNATUNE_PAPER.parts, "evaluator": "adaptive"},
    (
        *numbers("scheduler", "DynaTune's program: the predicted speed itself, in GFLOP/s", score="speed"),
        *numbers("scheduler", "DynaTune's program: its constraint is off by default", prior=False),
        *numbers("scheduler", "DynaTune's program: a curve is fitted whole", pieces=False),
        *numbers("scheduler", "DynaTune's program: C = 2 of any network", c_fast=2.0),
        *numbers("scheduler", "DynaTune's script: stops early; 200 in DynaTune, 5.3", patience=50),
        *ANNEALING,
        *RANKING,
        *batches("DynaTune's script"),
        *numbers("evaluator", "DynaTune's script: the fastest and the slowest batch count too", extremes=True),
        *first_plan("AutoTVM's program", 16),
        *numbers("search", "DynaTune's program: a plan, of which the rest waits for the next slot", ahead=32),
        # The clock is asked before every few of a plan.
        *numbers("rhythm", "as many as there are cores in DynaTune's program", plan=8),
        *warm_up(32),
        *numbers("rhythm", "DynaTune's script: slots of 20 s", slot_seconds=20.0),
    ),
    more="Where program and publication differ, this is the program: it scores by the predicted speed, not by what "
    "that takes off the network, its curves are whole and may end under the best, and an operator is finished sooner. "
    "Its bonus counts slots as the publication does: after the warm-up, t one more than there were, operators without "
    "one first; the program’s takes the logarithm of all slices, those of the warm-up among them and among an operator’s "
    f"own, and puts nobody first. The program’s script fits a curve by least squares alone; here it is sampled. {SKETCHES}",
)
