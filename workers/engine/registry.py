"""Making a registered part by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from workers.engine.errors import IllegalMethod, UnknownPart

T = TypeVar("T")


def make(role: str, registry: Mapping[str, Callable[..., T]], name: str, *owned: Any, **parameters: Any) -> T:
    """The part `name` of `registry`; `owned` is what every part of the role gets first (its generator or seed).

    Raises UnknownPart for a name that nobody registered and IllegalMethod for parameters that the part does not take.
    """
    check(role, registry, name)
    try:
        return registry[name](*owned, **parameters)
    except (TypeError, ValueError) as error:
        raise IllegalMethod(
            f"{role} {name!r} does not accept {parameters}: {error}; leave them out or correct them"
        ) from error


def check(role: str, registry: Mapping[str, object], name: str) -> None:
    """Raises UnknownPart, naming the legal choices, when `registry` has no `name`."""
    if name not in registry:
        raise UnknownPart(f"there is no {role} {name!r}; choose one of {', '.join(sorted(registry))}")
