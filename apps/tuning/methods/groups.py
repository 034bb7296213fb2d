"""The methods in the order of the form."""

from __future__ import annotations

from apps.tuning.methods.comparison import ABLATIONS, PUBLISHED, RIVALS
from apps.tuning.methods.papers import AUTO, PAPERS
from apps.tuning.methods.words import Group

GROUPS = (
    Group("Recommended", "", (AUTO,), everyday=True),
    Group("The papers’ methods", "With timings and plans for runs of minutes.", PAPERS),
    Group(
        "For comparison: who gets the time", "DynaTune’s search inside each operator, the time given otherwise.", RIVALS
    ),
    Group(
        "For comparison: as published or programmed",
        "With the papers’ own numbers or their programs’, for runs of hours.",
        PUBLISHED,
    ),
    Group(
        "For comparison: one part at a time",
        "Parts of a paper alone, or a paper without one of them, for runs of hours.",
        ABLATIONS,
    ),
)
CHOICES = tuple(words for group in GROUPS for words in group.methods)
NAMED = {words.name: words for words in CHOICES}
