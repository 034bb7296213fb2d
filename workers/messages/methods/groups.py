"""The methods in the order of the form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workers.messages.methods import adatune, auto, autotvm, chameleon, composed, dynatune, metaschedule, rivals
from workers.messages.methods.preset import Preset


@dataclass(frozen=True)
class Group:
    """Methods under one heading; an `everyday` one is shown at once."""

    title: str
    text: str
    methods: Sequence[Preset]
    everyday: bool = False


GROUPS = (
    Group("Recommended", "", (auto.AUTO,), everyday=True),
    Group(
        "The papers’ methods",
        "With timings and plans for runs of minutes.",
        (dynatune.DYNATUNE, chameleon.CHAMELEON, adatune.ADATUNE, *composed.SHORT),
    ),
    Group(
        "For comparison: who gets the time",
        "DynaTune’s search inside each operator, the time given otherwise.",
        rivals.RIVALS,
    ),
    Group(
        "For comparison: as published or programmed",
        "With the papers’ own numbers or their programs’, for runs of hours.",
        (
            autotvm.AUTOTVM,
            metaschedule.METASCHEDULE,
            dynatune.DYNATUNE_PAPER,
            dynatune.DYNATUNE_PROGRAM,
            chameleon.CHAMELEON_PAPER,
            chameleon.CHAMELEON_PROGRAM,
            adatune.ADATUNE_PAPER,
            *composed.PUBLISHED,
        ),
    ),
    Group(
        "For comparison: one part at a time",
        "Parts of a paper alone, or a paper without one of them, for runs of hours.",
        (*chameleon.ABLATIONS, *adatune.ABLATIONS),
    ),
)
