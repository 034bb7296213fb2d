"""Sizes for dimensions that a network leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.catalog.models import Network
from apps.core.errors import Refused

MAX_DIMENSION = 1 << 20


def choose_shapes(network: Network, owner: Any, shapes: Mapping[str, Sequence[int]]) -> Network:
    """Sizes for the dynamic dimensions of a network; fixed ones must stay. Raises Refused."""
    if network.owner_id != owner.pk or network.state != Network.State.READY:
        raise Refused(network.name, "it cannot be given sizes now", "wait until it was inspected")
    ports = {port["name"]: port["shape"] for port in network.inspection["inputs"]}
    for name in shapes.keys() - ports.keys():
        raise Refused(name, "the network has no such input", f"it has {', '.join(ports)}")
    chosen = {name: _sizes(name, declared, shapes.get(name)) for name, declared in ports.items()}
    _check_symbols(network.inspection.get("dynamic", ()), chosen)
    Network.objects.filter(pk=network.pk).update(shapes=chosen)
    network.shapes = chosen
    return network


def _sizes(name: str, declared: Sequence[Any] | None, given: Sequence[int] | None) -> list[int]:
    sizes = list(given if given is not None else declared or ())
    if declared is not None and len(sizes) != len(declared):
        raise Refused(sizes, f"input {name} has {len(declared)} dimensions", "give as many sizes")
    for axis, size in enumerate(sizes):
        fixed = declared[axis] if declared is not None else None
        if not isinstance(size, int) or not 0 < size <= MAX_DIMENSION:
            raise Refused(
                size,
                f"dimension {axis} of input {name} needs a whole number from 1 to {MAX_DIMENSION}",
                "give its size",
            )
        if isinstance(fixed, int) and fixed != size:
            raise Refused(size, f"dimension {axis} of input {name} is {fixed} in the file", "leave it as it is")
    return sizes


def _check_symbols(dynamic: Sequence[Mapping[str, Any]], chosen: Mapping[str, Sequence[int]]) -> None:
    known: dict[str, int] = {}
    for dimension in dynamic:
        symbol, size = dimension["symbol"], chosen[dimension["input"]][dimension["axis"]]
        if symbol is not None and known.setdefault(symbol, size) != size:
            raise Refused(size, f"{symbol} is {known[symbol]} elsewhere and must be one size", "give equal sizes")
