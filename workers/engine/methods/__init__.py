"""Methods by name. A preset joins by one entry in its paper's file in `presets`.

`auto` is what measures best; the presets reproduce the papers, `-paper` with the papers' budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workers.engine.errors import IllegalMethod
from workers.engine.methods.method import REGISTRIES, ROLES, Method, Rhythm
from workers.engine.methods.presets import adatune, autotvm, chameleon, composed, dynatune, rivals
from workers.engine.methods.rules import CHOOSING, POOL, check_legal
from workers.engine.registry import check

BEST = dynatune.DYNATUNE
"""What `auto` is. The one place to change when something else measures best."""

AUTO = replace(BEST, name="auto", summary=f"What measures best so far: the same as {BEST.name}. {BEST.summary}")

_FILES = (dynatune, autotvm, chameleon, adatune, composed, rivals)
METHODS: dict[str, Method] = {preset.name: preset for preset in (AUTO, *(p for file in _FILES for p in file.PRESETS))}


def method(name: str, parts: Mapping[str, str] | None = None) -> Method:
    """The preset `name`, with parts replaced by role, for example {"scheduler": "round_robin"}.

    A replaced part comes with its own default parameters, a sampler with the pool it wants. UnknownPart for names
    nobody registered, IllegalMethod for roles that do not exist and parts that do not fit together; both messages list
    what is legal.
    """
    check("method", METHODS, name)
    chosen = METHODS[name]
    parts = dict(parts or {})
    for role in parts:
        if role not in REGISTRIES:
            raise IllegalMethod(f"{role!r} is no part of a method; parts are {', '.join(ROLES)}")
    changed = {role: part for role, part in parts.items() if part != getattr(chosen, role)}
    kept: dict[str, Mapping[str, Any]] = {
        role: numbers for role, numbers in chosen.parameters.items() if role not in changed
    }
    if "sampler" in changed:
        search = {key: number for key, number in kept.get("search", {}).items() if key != "pool"}
        kept["search"] = {**search, "pool": POOL} if changed["sampler"] in CHOOSING else search
    made = replace(chosen, parameters=kept, **changed)
    check_legal(made)
    return made


__all__ = ["BEST", "METHODS", "REGISTRIES", "ROLES", "Method", "Rhythm", "method"]
