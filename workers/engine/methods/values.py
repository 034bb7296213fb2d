"""Values of parameters: as they are typed, and of which kind they have to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from workers.engine.errors import IllegalMethod
from workers.engine.explorer import PPO
from workers.engine.explorer.ppo.settings import Settings
from workers.engine.scheduler import DynaTune, Rule
from workers.messages.values import WORDS, word

APART: Mapping[type, type] = {DynaTune: Rule, PPO: Settings}
"""Parts whose parameters are a value of their own."""
LARGEST = 1e38
"""Of either sign: trees and agent calculate in single precision."""
CALLED = {
    bool: "on or off",
    int: "a whole number",
    float: f"a finite number (under {LARGEST:g})",
    str: "a word",
    NoneType: "none",
}


def value(text: str) -> Any:
    """JSON, or the text itself: the word after `search.acquisition=` needs no quotes, and on, off and none (`WORDS`) are what
    pages say for true, false and null. IllegalMethod for what JSON has not, and Python reads as a number all the same."""
    try:
        return _meant(json.loads(text, parse_constant=_no_number))
    except ValueError:
        return _meant(text)


def check_kinds(role: str, part: object, given: Mapping[str, Any]) -> None:
    """Raises IllegalMethod for a value that is none of the kind that `part` takes under its name; names that it does not take
    are left to who makes it."""
    kinds = get_type_hints(type(part).__init__)
    for kind, numbers in APART.items():
        if isinstance(part, kind):
            kinds |= get_type_hints(numbers)
    _check(role, kinds, given)


def _check(place: str, kinds: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    for name, one in given.items():
        kind = kinds.get(name, Any)
        if not _fits(one, kind):
            raise IllegalMethod(f"{place}.{name} {_shown(one)} must be {_called(kind)}; correct it or leave it out")
        if is_dataclass(kind):
            _check(f"{place}.{name}", get_type_hints(kind), one)


def _fits(one: object, kind: Any) -> bool:
    """Whether `one` is of a kind as annotations name it; a whole number is a number too, and a truth is neither."""
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(one, other) for other in get_args(kind))
    if kind is float:
        return isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < LARGEST
    if kind is int:
        return isinstance(one, int) and not isinstance(one, bool)
    if is_dataclass(kind):
        return isinstance(one, Mapping)
    if get_origin(kind) is Mapping:
        return isinstance(one, Mapping) and all(_fits(each, get_args(kind)[1]) for each in one.values())
    return kind not in CALLED or isinstance(one, kind)


def _called(kind: Any) -> str:
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(_called, get_args(kind)))
    return CALLED.get(kind, "numbers by name")


def _shown(one: object) -> str:
    return word(one) or repr(one)


def _meant(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: _meant(each) for name, each in one.items()}
    return WORDS.get(one, one) if isinstance(one, str) else one


def _no_number(text: str) -> Any:
    raise IllegalMethod(f"{text} is no finite number; give one, or none where a part takes no limit")
