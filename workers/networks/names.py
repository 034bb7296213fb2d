"""Names that no pass can make once more: what a pass adds is named after a tensor that is there, with "__" and a word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableSequence
from itertools import count
from typing import Any

from onnx import GraphProto, ModelProto

from workers.networks.subgraphs import nested

_MARK = re.compile("__(?!_)")


def names_apart(model: ModelProto) -> dict[str, str]:
    """Renames the tensors that are called as what a pass may make of another one. The names of inputs and outputs that are to
    come back, by what they are now."""
    taken = {name for graph in nested(model.graph) for name in _names(graph)}
    marked = sorted(name for name in taken if any(name[: mark.start()] in taken for mark in _MARK.finditer(name)))
    apart = "~"
    while any(apart in name for name in taken):
        apart += "~"
    fresh = {name: f"{name}{apart}{number}" for number, name in enumerate(marked)}
    respell(model.graph, fresh)
    ports = {value.name for value in (*model.graph.input, *model.graph.output)}
    return {now: name for name, now in fresh.items() if now in ports}


def names_back(model: ModelProto, ports: Mapping[str, str]) -> None:
    """Gives inputs and outputs their names again; where a pass has made a tensor of that name, that one yields."""
    if not ports:
        return
    taken = {name for graph in nested(model.graph) for name in _names(graph)} | {*ports.values()}
    respell(model.graph, {**ports, **{name: _free(name, taken) for name in ports.values()}})


def _free(name: str, taken: set[str]) -> str:
    """`name` and the first number that makes it none of these."""
    return next(free for number in count(1) if (free := f"{name}_{number}") not in taken)


def _names(graph: GraphProto) -> Iterator[str]:
    yield from (value.name for value in (*graph.input, *graph.output))
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from node.output


def respell(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Every tensor that has one of `names` gets the other, wherever it is made or read."""
    if not names:
        return
    for found in nested(graph):
        held: list[Any] = [*found.input, *found.output, *found.initializer, *found.value_info]
        for one in held:
            if one.name in names:
                one.name = names[one.name]
        for node in found.node:
            _replaced(node.input, names)
            _replaced(node.output, names)


def _replaced(spelt: MutableSequence[str], names: Mapping[str, str]) -> None:
    for place, name in enumerate(spelt):
        if name in names:
            spelt[place] = names[name]
