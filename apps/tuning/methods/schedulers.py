"""Schedulers in plain words, and the curves of the belief that some of them ask."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from apps.tuning.methods.words import Part
from workers.messages.methods import numbers

_of = partial(numbers, "scheduler")

_NEVER = _of("static: no operator is finished before it is exhausted (DynaTune, 5.2)", patience=None)
_FINISHED = _of("DynaTune, 5.3: configurations proposed without improvement that finish an operator", patience=200)
_RESCUE = "product: slots more than the others had, for an operator without a valid configuration"
_SCORE = _of(
    "DynaTune, 4.2: the latency that a slot is expected to take off; speed, the predicted one, in its program",
    score="improvement",
)
_PRIOR = _of(
    "DynaTune, 4.3: no curve ends under the best; product: under five points lean on the fit before; off in its program",
    prior=True,
)
_PIECES = _of("DynaTune, 4.3: a curve is cut at jumps of 20 %; whole in its program", pieces=True)

RULE = (
    *_SCORE,
    *_of("UCB1-NORMAL (Auer et al. 2002): the bonus follows the spread of an operator's own rewards", scale="spread"),
    *_of("product: the part of an operator's time that an unforeseen jump takes off", surprise=1 / 3),
    *_of("DynaTune, 5", c=2.0),
    *_of("product: a bonus of the rewards' size needs no 0.2 for fast networks", c_fast=2.0),
    *_of("DynaTune, 5, in seconds", fast_latency=1e-3),
    *_of(
        "product: configurations proposed without improvement that finish an operator; 200 in DynaTune, 5.3",
        patience=400,
    ),
    *_of("product: when all are finished, the patience is doubled", onward=True),
    *_of("product: a first slot is judged by what is known of its operator", open=True),
    *_of("product: the reward is what the curve gains from now on", rise=True),
    *_PRIOR,
    *_PIECES,
    *_of(_RESCUE, rescue=4),
    *_of("DynaTune, 4.3", curve="log_power"),
    *_of(
        "product: a third of the cost of the paper's sampling; the same operator first in 84 to 88 % of decisions, where that "
        "agrees with itself in 87 to 96 %",
        sampling={"walkers": 40, "steps": 120, "burn": 100, "samples": 400, "points": 10, "again": 60},
    ),
)
"""The product's."""
_BONUS = ("scale", "surprise", "c", "c_fast", "fast_latency")
_WITHOUT_BONUS = tuple(
    replace(number, source="of the bonus, for which nothing here asks") if number.name in _BONUS else number
    for number in RULE
)
_PAPER_RULE = (
    *_SCORE,
    *_of("DynaTune, 4.2: the bonus as printed, of 1 ms", scale="millisecond"),
    *_of("the product's addition, off", surprise=0.0),
    *_of("DynaTune, 4.2 and 5: C = 2, or 0.2 for networks under 1 ms", c=2.0, c_fast=0.2, fast_latency=1e-3),
    *_FINISHED,
    *_of("DynaTune, Algorithm 1: when all are finished, the run ends", onward=False),
    *_of("DynaTune, Algorithm 1: a first slot has the constant gamma", open=False),
    *_of("DynaTune, 4.3: the reward is the improvement over the best", rise=False),
    *_PRIOR,
    *_PIECES,
    *_of(_RESCUE, rescue=4),
    *_of("DynaTune, 4.3", curve="log_power"),
    *_of(
        "DynaTune, 5; the burn-in is its program's",
        sampling={"walkers": 10, "steps": 500, "burn": 300, "samples": 200, "points": None, "again": None},
    ),
)

SCHEDULERS = (
    Part(
        "dynatune",
        "Largest gain expected",
        "believes a curve for each operator and gives the slot to the largest gain it can expect, in doubt included "
        "(DynaTune, Algorithm 1); its bonus follows the size of the gains.",
        RULE,
    ),
    Part(
        "dynatune-paper",
        "Largest gain expected, as published",
        "the same with the bonus in milliseconds, as printed: C = 2, or 0.2 under 1 ms; an operator is finished after 200 "
        "configurations without improvement (DynaTune, 4.2 and 5).",
        _PAPER_RULE,
    ),
    Part(
        "epsilon_greedy",
        "Largest gain, some by chance",
        "the largest expected gain, and 5 % of the slots by chance (DynaTune, Appendix A).",
        (*_WITHOUT_BONUS, *_of("DynaTune, Appendix A", epsilon=0.05)),
    ),
    Part(
        "softmax",
        "By chance, larger gains more often",
        "each slot is drawn, an operator the likelier the larger the gain expected of it (DynaTune, Appendix A).",
        (
            *_WITHOUT_BONUS,
            *_of("product: the paper does not say", temperature=1.0),
            *_of("product: of the mean expected gain; the paper does not say of what", unit="mean"),
        ),
    ),
    Part(
        "gradient",
        "Steepest descent",
        "of the network's latency: alpha 0.2, beta 2, window 3 (Ansor; DynaTune, Appendix C).",
        (
            *_of("as Ansor's program: no operator is finished", patience=None),
            *_of("Ansor's program; DynaTune, Appendix C", alpha=0.2, beta=2.0, window=3),
            *_of("Ansor's program has a parameter of 0.05 that nothing reads", epsilon=0.0),
            *_of(_RESCUE, limit=4),
        ),
    ),
    Part(
        "sequential",
        "One after the other",
        "each operator is done before the next begins, in equal parts of the budget (DynaTune, 5.1).",
        _NEVER,
    ),
    Part("round_robin", "In turn", "every operator has its slot before one has another (DynaTune, 5.2).", _NEVER),
    Part("random", "By chance", "each slot goes to an operator that is drawn (DynaTune, 5.2).", _NEVER),
    Part(
        "linear",
        "By work",
        "an operator gets time in proportion to its work, as often as the network runs it; work is its FLOPs, or its bytes "
        "where moving these takes longer (DynaTune, 5.2: FLOPs).",
        _NEVER,
    ),
    Part(
        "dynamic_round_robin",
        "In turn, without finished ones",
        "as round_robin; an operator is finished when 200 configurations brought nothing (DynaTune, 5.3).",
        _FINISHED,
    ),
    Part(
        "dynamic_random",
        "By chance, without finished ones",
        "as random; an operator is finished when 200 configurations brought nothing (DynaTune, 5.3).",
        _FINISHED,
    ),
    Part(
        "oracle",
        "Known curves",
        "knows what every slot will bring (DynaTune, 4.1). Only for comparisons on recorded landscapes: a run on a machine "
        "cannot have it.",
        (
            *_of("of the landscape", curves=None),
            *_NEVER,
            *_of("the number of slots of the run, where the best split of them is wanted", horizon=None),
            *_of("product: slots that it looks ahead, all; 1 in DynaTune, 4.1", ahead=None),
            *_of("of the landscape: candidates of a slot, where that is a plan", plan=None),
            *_of("of the landscape: which of an operator's candidates its curve counts", places=None),
            *_of(_RESCUE, limit=4),
        ),
    ),
)

CURVES = (
    Part(
        "log_power",
        "Log power",
        "rises to a ceiling of its own, as a logistic curve of ln x (DynaTune, 4.3: works best).",
    ),
    Part("pow2", "Power of two parameters", "a power of x; the peak is its only ceiling (DynaTune, 4.3)."),
    Part("pow4", "Power of four parameters", "a ceiling less a falling power of x (DynaTune, 4.3)."),
    Part("log_linear", "Log-linear", "every doubling of x adds as much (DynaTune, 4.3)."),
    Part(
        "log_log_linear", "Log-log-linear", "the logarithm of log-linear: flattens where that goes on (DynaTune, 4.3)."
    ),
)
"""Of x configurations within a segment: values of `scheduler.curve`."""
