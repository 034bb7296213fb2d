"""A method with some of its parts replaced, {role: name}: what it is called, and whether its parts fit together."""

from __future__ import annotations

from collections.abc import Mapping

from apps.tuning.methods.parts import ROLES
from workers.messages.composition import Composition, inherited
from workers.messages.methods import PRESETS


def replaced(method: str, parts: Mapping[str, str]) -> dict[str, str]:
    """Of `parts` those that the method does not have anyway."""
    return {role: part for role, part in parts.items() if part and part != PRESETS[method].parts[role]}


def misfit(method: str, parts: Mapping[str, str]) -> str:
    """Why they do not fit together, in the engine's words; empty where they do."""
    preset, changed = PRESETS[method], replaced(method, parts)
    return Composition.of({**preset.parts, **changed}, inherited(preset.parameters, changed)).misfit


def titled(method: str, parts: Mapping[str, str]) -> str:
    """DynaTune with scheduler round_robin and sampler diverse."""
    title = PRESETS[method].title if method in PRESETS else method
    named = [f"{word.lower()} {parts[role]}" for role, word in ROLES.items() if role in parts]
    told = " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))
    return f"{title} with {told}" if told else title
