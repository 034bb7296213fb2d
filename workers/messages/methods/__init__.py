"""The methods: of which parts and numbers each is made, from where these are, and what it does in plain words.

`auto` is the recommended one; the others reproduce the papers, `-paper` with the papers' budgets, `-program` as their
authors' programs do it where that is not what the paper says. One file a paper; a method joins by its place in `groups`. The
engine makes them of its parts, the pages tell of them.
"""

from __future__ import annotations

from workers.messages.methods.auto import BEST
from workers.messages.methods.groups import GROUPS
from workers.messages.methods.preset import Number, Preset, numbers

PRESETS = {preset.name: preset for group in GROUPS for preset in group.methods}

__all__ = ["BEST", "GROUPS", "PRESETS", "Number", "Preset", "numbers"]
