"""The methods in plain words, in the order of the form. The engine has them, which the web process must not import;
a test compares names, parts and numbers."""

from __future__ import annotations

from apps.tuning.methods.composed import misfit, replaced, titled
from apps.tuning.methods.groups import CHOICES, GROUPS, NAMED
from apps.tuning.methods.parts import OFFERED, PARTS, ROLES, VALUES
from apps.tuning.methods.words import Group, Number, Part, Words

__all__ = [
    "CHOICES",
    "GROUPS",
    "NAMED",
    "OFFERED",
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
