"""The methods in plain words, in the order of the form. The engine has them; a test compares names, parts and numbers."""

from __future__ import annotations

from apps.dashboard.methods.comparison import ABLATIONS, PUBLISHED, RIVALS
from apps.dashboard.methods.papers import AUTO, PAPERS
from apps.dashboard.methods.parts import PARTS, ROLES
from apps.dashboard.methods.words import Group, Number, Part, Words

GROUPS = (
    Group("Recommended", "", (AUTO,), everyday=True),
    Group("The papers’ methods", "With timings and plans for runs of minutes.", PAPERS),
    Group(
        "For comparison: who gets the time", "DynaTune’s search inside each operator, the time given otherwise.", RIVALS
    ),
    Group("For comparison: as published", "With the papers’ own numbers, for runs of hours.", PUBLISHED),
    Group("For comparison: one part at a time", "What each part of a paper does alone, for runs of hours.", ABLATIONS),
)
CHOICES = tuple(words for group in GROUPS for words in group.methods)
TITLES = {words.name: words.title for words in CHOICES}

__all__ = ["CHOICES", "GROUPS", "PARTS", "ROLES", "TITLES", "Group", "Number", "Part", "Words"]
