"""Methods by name, made of the parts that are registered here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workers.engine.errors import IllegalMethod
from workers.engine.methods.method import REGISTRIES, ROLES, Method, Rhythm
from workers.engine.methods.rules import check_legal, check_numbers
from workers.engine.methods.values import value
from workers.engine.registry import check
from workers.messages.composition import inherited
from workers.messages.methods import PRESETS

RHYTHMS = ("search", "rhythm")
"""What has parameters and is no part."""

METHODS = {name: Method(name, parameters=preset.parameters, **preset.parts) for name, preset in PRESETS.items()}


def method(name: str, parts: Mapping[str, str] | None = None, *, stored: bool = False) -> Method:
    """The preset `name`, with parts replaced by role, for example {"scheduler": "round_robin"}, and with parameters of
    parts, of "search" and of "rhythm", as JSON or a plain word (`values.value`): {"explorer.chains": "64"}.

    A replaced part comes with its own default parameters, a sampler with the pool it wants. UnknownPart for names
    nobody registered, IllegalMethod for roles that do not exist, parts that do not fit together and parameters that
    they do not take; the messages list what is legal. A run that is `stored` was made when more was: parts of it that nobody
    would ask are let pass, and 1 where it is on.
    """
    check("method", METHODS, name)
    chosen = METHODS[name]
    given = dict(parts or {})
    parts = {role: part for role, part in given.items() if "." not in role}
    for role in parts:
        if role not in REGISTRIES:
            raise IllegalMethod(f"{role!r} is no part of a method; parts are {', '.join(ROLES)}")
    changed = {role: part for role, part in parts.items() if part != getattr(chosen, role)}
    numbers = {place: text for place, text in given.items() if "." in place}
    made = replace(chosen, parameters=_with(inherited(chosen.parameters, changed), numbers), **changed)
    if numbers:
        check_numbers(made, stored)
    check_legal(made, stored)
    return made


def _with(parameters: Mapping[str, Mapping[str, Any]], numbers: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
    """`parameters` with those that `numbers` name by role and name; IllegalMethod for a role that there is not."""
    found = dict(parameters)
    for place, text in numbers.items():
        role, _, name = place.partition(".")
        if role not in (*ROLES, *RHYTHMS):
            raise IllegalMethod(f"{place!r}: {role!r} takes no parameters; {', '.join((*ROLES, *RHYTHMS))} do")
        found[role] = {**found.get(role, {}), name: value(text)}
    return found


__all__ = ["METHODS", "REGISTRIES", "ROLES", "Method", "Rhythm", "method"]
