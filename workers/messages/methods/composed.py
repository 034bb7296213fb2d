"""Two papers in one method: DynaTune gives the slots, and its operators are searched as another paper does, with that one's
plans; a warm-up is one of them."""

from __future__ import annotations

from workers.messages.methods import adatune, chameleon, dynatune
from workers.messages.methods.autotvm import PLAN, REGRESSION, RUNS_500, SKETCHES
from workers.messages.methods.preset import Preset

_TOGETHER = "put together here"

SHORT = (
    Preset(
        "dynatune-chameleon",
        "DynaTune with Chameleon’s search",
        "DynaTune gives the slots; inside an operator an agent learns which knobs to turn, and one configuration of each kind "
        "is measured.",
        f"{dynatune.DYNATUNE.paper}, with {chameleon.CHAMELEON.paper}; {_TOGETHER}",
        {**chameleon.CHAMELEON.parts, "scheduler": "dynatune"},
        chameleon.CHAMELEON.numbers,
    ),
    Preset(
        "dynatune-adatune",
        "DynaTune with AdaTune’s search",
        "DynaTune gives the slots; inside an operator timing stops once the times agree, and chance follows doubt.",
        f"{dynatune.DYNATUNE.paper}, with {adatune.PAPER}, and its authors' program; {_TOGETHER}",
        {**adatune.ADATUNE.parts, "scheduler": "dynatune"},
        adatune.ADATUNE.numbers,
    ),
)
"""For runs of minutes."""
PUBLISHED = (
    Preset(
        "dynatune-chameleon-paper",
        "DynaTune with Chameleon as published",
        "DynaTune’s slots over Chameleon’s search, with the numbers of both publications. Takes hours.",
        f"{dynatune.DYNATUNE_PAPER.paper}, with {chameleon.CHAMELEON_PAPER.paper}; {_TOGETHER}",
        {**chameleon.CHAMELEON.parts, "scheduler": "dynatune-paper"},
        (
            *chameleon.AGENT,
            *chameleon.CLUSTERS,
            *REGRESSION,
            *RUNS_500,
            *chameleon.SAMPLED,
            *PLAN,
            *dynatune.warm_up(64),
            *dynatune.SLOTS,
        ),
        more=SKETCHES,
    ),
    Preset(
        "dynatune-adatune-paper",
        "DynaTune with AdaTune as published",
        "DynaTune’s slots over AdaTune’s search, with the numbers of the publication and the program. Takes hours.",
        f"{dynatune.DYNATUNE_PAPER.paper}, with {adatune.PAPER}, and its authors' program; {_TOGETHER}",
        {**adatune.ADATUNE.parts, "scheduler": "dynatune-paper"},
        (
            *adatune.HALVED,
            *adatune.FOREST,
            *adatune.BATCHES,
            *adatune.IMPROVEMENT,
            *adatune.CONTEXTUAL,
            *adatune.PLAN,
            *dynatune.warm_up(32),
            *dynatune.SLOTS,
        ),
        more=SKETCHES,
    ),
)
