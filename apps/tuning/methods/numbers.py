"""Parameters that several methods share, with their sources."""

from __future__ import annotations

from apps.tuning.methods.words import Number, numbers

_TABLE_8 = "Chameleon, Table 8"
_ADDITION = "the product's addition, off"

ANNEALING = (
    *numbers("explorer", _TABLE_8, chains=128, steps=500),
    *numbers("explorer", "AutoTVM's program, v0.19", patience=50),
    *numbers("explorer", _ADDITION, elite=0.0, exhaustive=False),
)
ANNEALING_OF_AUTOTVM = (
    *ANNEALING,
    *numbers(
        "explorer",
        "AutoTVM's program: temperature is of the speed over the best, not of its logarithm",
        differences="speed",
    ),
)
AGENT = (
    *numbers("explorer", "Chameleon, Tables 7 and 9", steps=500, rate=1e-3, entropy=0.1),
    *numbers("explorer", "PPO (Schulman et al.) and Chameleon's program: in nats, over all knobs", spread="action"),
    *numbers("explorer", "PPO (Schulman et al.), which Chameleon, 3.4, takes: of the whole action", ratio="joint"),
    *numbers("explorer", "Chameleon, 3.2", reward="speed"),
    *numbers("explorer", "not in the paper: what fits into a second a search", minibatch=512),
    *numbers("explorer", _ADDITION, elite=0.0, exhaustive=False),
)
CLUSTERS = numbers("sampler", "Chameleon, 3.3, Algorithm 1", mode="literal", columns="knobs", snap="space")
REGRESSION = (
    *numbers("cost_model", _TABLE_8, objective="reg", target="speed"),
    *numbers("cost_model", "not in the papers", rounds=100, subsample=1.0),
)
RANKING = (
    *numbers("cost_model", "DynaTune's scripts", objective="rank"),
    *numbers("cost_model", "not in the papers", rounds=100, subsample=1.0),
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
FOREST = numbers("cost_model", "AdaTune's program", target="speed", calibration="raw")
RUNS_500 = (
    *numbers(
        "evaluator", "the number in the papers' scripts", runs=500, most=500, seconds=0.0, reject=0.0, statistic="mean"
    ),
    *numbers("evaluator", "the papers' scripts: a run is one call", shortest=0.0),
)


def batches(source: str) -> tuple[Number, ...]:
    """Of the adaptive evaluator, as `source` has them."""
    return (
        *numbers("evaluator", source, most=500, seconds=0.0, batch=50, batches=2, epsilon=0.1, reject=0.0),
        *numbers("evaluator", f"{source}: a run is one call", shortest=0.0),
    )


BATCHES = batches("AdaTune's program")
ONE = numbers("search", "one default configuration makes the latency finite, before all that is searched", starts=1)


def first_plan(source: str, first: int) -> tuple[Number, ...]:
    """Of the inner search, as `source` has them."""
    return (*ONE, *numbers("search", f"{source}: the first plan is random; some of it is not built", first=first))


FIRST = first_plan("AutoTVM's program", 32)
SAMPLED = (
    *ONE,
    *numbers("search", "Chameleon, 3.1: the first plan is sampled too; random in its program", first=0),
    *numbers("search", "Chameleon, Algorithm 1: all that is measured was sampled", epsilon=0.0),
)
EAGER = (
    *numbers("rhythm", _TABLE_8, plan=64),
    *numbers("rhythm", "one configuration makes the latency finite", warm_up=1),
)
ITERATIONS = numbers("rhythm", "Chameleon, Table 7: iterations of an operator", slots=16)
