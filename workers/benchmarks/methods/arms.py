"""What is compared: a method by its name, with parts of it replaced."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.errors import EngineError
from workers.engine.methods import METHODS, Method, method
from workers.engine.scheduler import SCHEDULERS
from workers.headless.errors import UserMistake
from workers.messages.composition import POOL
from workers.messages.methods import BEST

NEXT = "oracle+scheduler.ahead=1"
"""The oracle of DynaTune 4.1, which knows what the next slot of every operator brings and looks over no plateau."""
PAPER, PAPER_RULE = "dynatune-paper", "dynatune+scheduler=dynatune-paper"
"""DynaTune with the published slots of 100 s and bonus of 1 ms, and with that rule in our slots."""
SCHEDULING = (
    "sequential", "random_slots", "round_robin", "linear", "dynamic_random", "dynamic_round_robin", "gradient",
    "epsilon_greedy", "softmax", "dynatune", PAPER, PAPER_RULE, "oracle", NEXT,
)  # fmt: skip
"""DynaTune's rivals (5.1 to 5.3, Appendices A and C), for curve landscapes. Not "random" and "auto": with recorded searches
they would be round_robin and dynatune. Not "metaschedule" here or below: its search is TVM's."""

RANKING = 'autotvm+rhythm.plan=32+search.first=16+cost_model.objective="rank"'
"""AutoTVM with the plans and the objective of AdaTune's script, which compares with it so. Its walk forgives by speed, as
AutoTVM's; that of PAPER, with the same trees, by the logarithm of what they say."""
SA, AE, SA_AS, AE_AS = "autotvm", "chameleon-ae", "chameleon-sa-as", "chameleon-paper"
WIDE = f"+search.pool={POOL:g}+search.first={METHODS[SA].rhythm.plan}+search.epsilon=0.05"
"""Samplers are compared on as many candidates, after the same first plan: more is no merit of theirs."""
AE_AS_ON = f"{AE_AS}+rhythm.slots=null"
"""Beyond the iterations after which Chameleon ends: the agent that its sampling is compared under has no such end."""
DIVERSE, DIVERSE_AE = f"{SA}+sampler=diverse{WIDE}", f"{AE}+sampler=diverse{WIDE}"
WIDE_SA_AS, WIDE_AE_AS = SA_AS + WIDE, AE_AS_ON + WIDE
SEARCHING = (
    "random", RANKING, SA, AE, SA_AS, AE_AS, AE_AS_ON, WIDE_SA_AS, WIDE_AE_AS, DIVERSE, DIVERSE_AE, "adatune-evaluator",
    "adatune-surrogate", "adatune-contextual", "adatune-paper", "sequential", "chameleon", "adatune", "dynatune",
    PAPER, "dynatune-chameleon", "dynatune-adatune", "auto",
)  # fmt: skip
"""Chameleon's and AdaTune's ablations, and the product's methods, for space landscapes."""


def arm_named(name: str) -> Method:
    """The method of an arm, under the arm's name. Raises UserMistake with what is known.

    An arm is a preset's name, or a scheduler's (with the search that its rivals have), then as often as wanted +ROLE=PART,
    or +ROLE.PARAMETER=JSON for a parameter of a part, of "search" or of "rhythm".
    """
    try:
        return replace(method(*spelled(name)), name=name)
    except (EngineError, ValueError) as error:
        raise UserMistake(f"--methods {name}: {error}") from None


def spelled(name: str) -> tuple[str, dict[str, str]]:
    """A preset's name and the changes to it, as `method` takes them; ValueError for a change that is none."""
    base, *changes = name.split("+")
    pairs = dict(_pair(change) for change in changes)
    if base not in METHODS and base in SCHEDULERS:
        return BEST.name, {"scheduler": base, **pairs}
    return base, pairs


def _pair(change: str) -> tuple[str, str]:
    role, separator, part = change.partition("=")
    if not separator:
        raise ValueError(f"{change!r} must look like ROLE=PART")
    return role, part
