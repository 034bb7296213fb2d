"""Two papers in one method: DynaTune gives the slots, and its operators are searched as another paper does."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.methods.method import Method
from workers.engine.methods.presets.adatune import ADATUNE, ADATUNE_PAPER
from workers.engine.methods.presets.chameleon import CHAMELEON, CHAMELEON_PAPER
from workers.engine.methods.presets.dynatune import DYNATUNE, DYNATUNE_PAPER


def _composed(name: str, searched: Method, slots: Method, summary: str) -> Method:
    """The search of one, with its plans, under the scheduler of the other, with its slots; a warm-up of one plan where that
    has one."""
    plan = searched.parameters["rhythm"]["plan"]
    rhythm = {**slots.parameters.get("rhythm", {}), "plan": plan}
    if "warm_up" in rhythm:
        rhythm["warm_up"] = plan
    return replace(
        searched,
        name=name,
        scheduler=slots.scheduler,
        summary=summary,
        parameters={**searched.parameters, "rhythm": rhythm},
    )


PRESETS = (
    _composed(
        "dynatune-chameleon",
        CHAMELEON,
        DYNATUNE,
        "DynaTune's scheduler over Chameleon's search: slots to the operators that promise most, an agent that learns which "
        "knobs to turn, and one configuration a cluster of what it finds.",
    ),
    _composed(
        "dynatune-adatune",
        ADATUNE,
        DYNATUNE,
        "DynaTune's scheduler over AdaTune's search: slots to the operators that promise most, timings that end when they "
        "agree, a forest that says how sure it is, and a share of chance that follows its doubt.",
    ),
    _composed(
        "dynatune-chameleon-paper",
        CHAMELEON_PAPER,
        DYNATUNE_PAPER,
        "DynaTune's scheduler over Chameleon's search with the numbers of both papers: slots of 100 s, 128 episodes of 500 "
        "steps. Meant for runs of hours.",
    ),
    _composed(
        "dynatune-adatune-paper",
        ADATUNE_PAPER,
        DYNATUNE_PAPER,
        "DynaTune's scheduler over AdaTune's search with the numbers of the paper and of the program: slots of 100 s, up to "
        "500 runs in batches of 50. Meant for runs of hours.",
    ),
)
