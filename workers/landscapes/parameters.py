"""The parameters that a part of a method works with: those that a method sets, and the defaults of all others."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from workers.engine.explorer import Evolutionary
from workers.engine.explorer.evolutionary import METASCHEDULE
from workers.engine.explorer.ppo import Settings
from workers.engine.methods import REGISTRIES, Method
from workers.engine.scheduler import PAPER_RULE, PRODUCT_RULE, Gradient, Oracle
from workers.messages.composition import KNOWING

HANDED_ON: dict[tuple[str, str], tuple[Any, ...]] = {
    ("scheduler", "dynatune"): (PRODUCT_RULE,),
    ("scheduler", "dynatune-paper"): (PAPER_RULE,),
    ("scheduler", "epsilon_greedy"): (PRODUCT_RULE,),
    ("scheduler", "softmax"): (PRODUCT_RULE,),
    ("scheduler", "gradient"): (Gradient,),
    ("scheduler", KNOWING): (Oracle,),
    ("explorer", "metaschedule"): (Evolutionary, METASCHEDULE),
    ("explorer", "ppo"): (Settings(),),
}
"""Where the defaults are of factories that hand parameters on; of all others the signature has them."""


def resolved(role: str, method: Method) -> dict[str, Any]:
    """By name; a default that is a dataclass is one here too, and a whole number where the default is a float is a float."""
    part, found = getattr(method, role), dict[str, Any]()
    for behind in (*HANDED_ON.get((role, part), ()), REGISTRIES[role][part]):
        found |= _defaults(behind)
    for name, value in method.parameters.get(role, {}).items():
        known = found.get(name)
        if is_dataclass(known) and not isinstance(known, type):
            value = replace(known, **value)
        elif isinstance(known, float) and type(value) is int:
            value = float(value)
        found[name] = value
    return found


def walking(method: Method) -> Method:
    """`method` whose explorer never scores a sketch whole in place of walking. Parts of spaces are small enough for that, and
    operators of networks are not."""
    if "exhaustive" not in resolved("explorer", method):
        return method
    explorer = {**method.parameters.get("explorer", {}), "exhaustive": False}
    return replace(method, parameters={**method.parameters, "explorer": explorer})


def _defaults(of: Any) -> dict[str, Any]:
    if isinstance(of, Mapping):
        return dict(of)
    if is_dataclass(of) and not isinstance(of, type):
        return {one.name: getattr(of, one.name) for one in fields(of)}
    named = inspect.signature(of).parameters.values()
    return {one.name: one.default for one in named if one.default is not one.empty and one.name != "seed"}
