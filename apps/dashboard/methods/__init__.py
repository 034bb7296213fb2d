"""The methods in plain words, in the order of the form. The engine has them; a test compares names, parts and numbers."""

from __future__ import annotations

from apps.dashboard.methods.composed import misfit, replaced, titled
from apps.dashboard.methods.groups import CHOICES, GROUPS, NAMED
from apps.dashboard.methods.parts import PARTS, ROLES, VALUES
from apps.dashboard.methods.words import Group, Number, Part, Words

__all__ = [
    "CHOICES",
    "GROUPS",
    "NAMED",
    "PARTS",
    "ROLES",
    "VALUES",
    "Group",
    "Number",
    "Part",
    "Words",
    "misfit",
    "replaced",
    "titled",
]
