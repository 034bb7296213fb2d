"""Two papers in one method: DynaTune gives the slots, and its operators are searched as another paper does."""

from __future__ import annotations

from dataclasses import replace

from workers.engine.methods.method import Method
from workers.engine.methods.presets.adatune import ADATUNE, ADATUNE_PAPER
from workers.engine.methods.presets.chameleon import CHAMELEON, CHAMELEON_PAPER
from workers.engine.methods.presets.dynatune import DYNATUNE, DYNATUNE_PAPER


def _composed(name: str, searched: Method, slots: Method, summary: str) -> Method:
    """The search of one under the scheduler of the other, its warm-up and the length of its slots."""
    given = {key: value for key, value in slots.parameters.get("rhythm", {}).items() if key != "plan"}
    rhythm = {key: value for key, value in searched.parameters.get("rhythm", {}).items() if key == "plan"}
    return replace(
        searched,
        name=name,
        scheduler=slots.scheduler,
        summary=summary,
        parameters={**searched.parameters, "rhythm": {**given, **rhythm}},
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
        "The same with the numbers of both papers: slots of 100 s, 128 episodes of 500 steps. Meant for runs of hours.",
    ),
    _composed(
        "dynatune-adatune-paper",
        ADATUNE_PAPER,
        DYNATUNE_PAPER,
        "The same with the numbers of DynaTune's paper and AdaTune's program: slots of 100 s, up to 500 runs in batches of "
        "50. Meant for runs of hours.",
    ),
)
