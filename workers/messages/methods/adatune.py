"""AdaTune (Li et al., NeurIPS 2020): adaptive evaluator, surrogate with uncertainty, contextual optimizer; and
methods that have one or two of them.

`adatune-surrogate` has evaluator and surrogate, `adatune-contextual` surrogate and optimizer, each AdaTune but for the third.
`adatune-evaluator` has the evaluator alone, on the AutoTVM of Chameleon's Table 8 (plans of 64, trees on speed), not on that of
AdaTune's script (plans of 32, ranking trees).
"""

from __future__ import annotations

from workers.messages.methods.autotvm import (
    ANNEALING,
    AT_ONCE,
    AUTOTVM,
    BY_SPEED,
    EAGER,
    FIRST,
    REGRESSION,
    RUNS_500,
    SKETCHES,
    first_plan,
)
from workers.messages.methods.preset import Number, Preset, numbers, parts

PAPER = "AdaTune (Li et al., NeurIPS 2020)"
_PROGRAM = f"{PAPER}; the authors' program"

_CHAINS = numbers("explorer", "AdaTune's program: twice the plan", chains=64)
HALVED = (
    *_CHAINS,
    *(number for number in ANNEALING if number.name != "chains"),
    *numbers("explorer", "AdaTune's program: temperature is of FLOP/s, of which it forgives none", differences="flops"),
)
FOREST = numbers("cost_model", "AdaTune's program", target="speed", calibration="raw")


def batches(source: str) -> tuple[Number, ...]:
    """Of the adaptive evaluator, as `source` has them: nothing is compared with the best so far."""
    return (
        *numbers("evaluator", source, most=500, seconds=0.0, batch=50, batches=2, epsilon=0.1, reject=0.0),
        *numbers("evaluator", f"{source}: a run is one call", shortest=0.0),
    )


BATCHES = batches("AdaTune's program")
IMPROVEMENT = (
    *first_plan("AdaTune's program", 16),
    *numbers("search", "AdaTune's surrogate", acquisition="expected_improvement"),
)
CONTEXTUAL = numbers("search", "AdaTune's contextual optimizer", contextual=True)
PLAN = numbers("rhythm", "AdaTune's program", plan=32)
_EAGER = (*PLAN, *AT_ONCE)

ADATUNE = Preset(
    "adatune",
    "AdaTune",
    "Stops timing a configuration once its times agree, and explores more where it is unsure.",
    f"{PAPER}, abstract and introduction; the authors' program",
    parts("sequential", "simulated_annealing", "greedy", "random_forest", "adaptive"),
    (
        *_CHAINS,
        *numbers(
            "search", "AdaTune's surrogate and contextual optimizer", acquisition="expected_improvement", contextual=True
        ),
        *numbers("search", "product: share of the time for measuring a lucky best again", confirm=0.03),
        *PLAN,
    ),
    more="One operator after the other. The share of random configurations follows the doubt of the cost model.",
)  # fmt: skip
ADATUNE_PAPER = Preset(
    "adatune-paper",
    "AdaTune as published",
    "With the timings and plans of its program. Takes hours.",
    _PROGRAM,
    ADATUNE.parts,
    (*HALVED, *FOREST, *BATCHES, *IMPROVEMENT, *CONTEXTUAL, *_EAGER),
    more=SKETCHES,
)

ABLATIONS = (
    Preset("adatune-evaluator", "AdaTune: the timing alone", "AutoTVM that stops timing once the times agree. Takes hours.",
           _PROGRAM, {**AUTOTVM.parts, "evaluator": "adaptive"},
           (*ANNEALING, *BY_SPEED, *REGRESSION, *BATCHES, *FIRST, *EAGER),
           more="The AutoTVM of Chameleon’s Table 8, with plans of 64 and trees that learn the speed; AdaTune’s script "
           "compares with plans of 32 and trees that rank."),
    Preset("adatune-surrogate", "AdaTune: a fixed share of chance", "AdaTune as published, with 5 % of chance. Takes hours.",
           _PROGRAM, ADATUNE.parts,
           (*HALVED, *FOREST, *BATCHES, *IMPROVEMENT, *numbers("search", "as AutoTVM", epsilon=0.05), *_EAGER),
           more="Surrogate and timing, without the contextual optimizer."),
    Preset("adatune-contextual", "AdaTune: long timings", "AdaTune as published, with 500 runs of each configuration. Takes "
           "hours.", _PROGRAM, {**ADATUNE.parts, "evaluator": "fixed"},
           (*HALVED, *FOREST, *RUNS_500, *IMPROVEMENT, *CONTEXTUAL, *_EAGER),
           more="Surrogate and contextual optimizer, without the timing."),
)  # fmt: skip
