"""Small changes of an ONNX graph that every clean-up pass needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from workers.networks.subgraphs import every, nested, subgraphs

Array = NDArray[Any]

HANDING_ON = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"})
"""Operators whose output has the values that their first input has, and no others."""


class Weights:
    """The constants of the main graph by name, as arrays when asked for. `put` replaces or adds one."""

    def __init__(self, graph: GraphProto) -> None:
        self._graph = graph
        self._at: dict[str, TensorProto] = {tensor.name: tensor for tensor in graph.initializer}

    def __contains__(self, name: str) -> bool:
        return name in self._at

    def tensor(self, name: str) -> TensorProto | None:
        """The stored tensor, without decoding it."""
        return self._at.get(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Of one constant, without decoding it; KeyError where there is none."""
        return tuple(self._at[name].dims)

    def get(self, name: str) -> Array:
        """Values of one constant; KeyError where there is none."""
        return np.asarray(numpy_helper.to_array(self._at[name]))

    def put(self, name: str, values: Array) -> str:
        """Adds a constant under `name`, made unique when taken; returns the name."""
        unique, number = name, 0
        while unique in self._at:
            number += 1
            unique = f"{name}_{number}"
        tensor = self._graph.initializer.add()
        tensor.CopyFrom(numpy_helper.from_array(np.asarray(values, order="C"), unique))
        self._at[unique] = tensor
        return unique


class Parts:
    """The operators that are written in place of one, and their constants, named after its result."""

    def __init__(self, result: str, weights: Weights) -> None:
        self.result = result
        self._weights = weights
        self._nodes: list[NodeProto] = []

    def add(self, kind: str, part: str, *inputs: str, **attributes: Any) -> str:
        """The name of what one makes that is called `part` among them."""
        return self.several(kind, [part], *inputs, **attributes)[0]

    def several(self, kind: str, parts: Iterable[str], *inputs: str, **attributes: Any) -> list[str]:
        """The same of one that makes several."""
        names = [f"{self.result}__{part}" for part in parts]
        self._nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def constant(self, part: str, values: Any) -> str:
        return self._weights.put(f"{self.result}__{part}", np.asarray(values))

    def numbers(self, part: str, values: Iterable[int]) -> str:
        return self.constant(part, np.asarray([*values], np.int64))

    def all(self) -> list[NodeProto]:
        """The last one makes the result."""
        self._nodes[-1].output[0] = self.result
        return self._nodes


def attribute(node: NodeProto, name: str, default: Any = None) -> Any:
    """Value of an attribute, or `default`."""
    for candidate in node.attribute:
        if candidate.name == name:
            return helper.get_attribute_value(candidate)
    return default


def called(node: NodeProto) -> str:
    """What a refusal names an operator by."""
    return f"{node.op_type} {node.name or node.output[0]}"


def set_attributes(node: NodeProto, **values: Any) -> None:
    """Replaces attributes by name; None takes one away."""
    copy = NodeProto(attribute=[one for one in node.attribute if one.name not in values])
    copy.attribute.extend(helper.make_attribute(name, value) for name, value in values.items() if value is not None)
    del node.attribute[:]
    node.attribute.extend(copy.attribute)


def joins_channels(node: NodeProto) -> bool:
    """Whether it concatenates along the axis of channels."""
    return bool(node.op_type == "Concat" and attribute(node, "axis") == 1)


def operator_types(model: ModelProto) -> set[str]:
    """Of all graphs of the network, those inside its operators included."""
    return {node.op_type for node in every(model.graph.node)}


def has_convolutions(model: ModelProto) -> bool:
    """In its main graph."""
    return any(node.op_type == "Conv" for node in model.graph.node)


def rewired(node: NodeProto, inputs: Sequence[str], output: str) -> NodeProto:
    """The same operator between other tensors; it is named after its one output."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.name = output
    del copy.input[:], copy.output[:]
    copy.input.extend(inputs)
    copy.output.append(output)
    return copy


def uses(model: ModelProto) -> Counter[str]:
    """How often each name is read: by operators, subgraphs and as an output of the network."""
    return Counter(_reads(model.graph))


def _reads(outer: GraphProto) -> Iterator[str]:
    for graph in nested(outer):
        yield from (value.name for value in graph.output)
        for node in graph.node:
            yield from filter(None, node.input)  # one that is left out has no name


def makers_of(graph: GraphProto) -> dict[str, NodeProto]:
    """Of each name the operator that makes it."""
    return {name: node for node in graph.node for name in node.output}


def constants_of(graphs: Iterable[GraphProto]) -> dict[str, TensorProto]:
    """What is stored in these graphs, as weights or in Constant operators, by name and not decoded: it may be gigabytes."""
    found: dict[str, TensorProto] = {}
    for graph in graphs:
        found |= {tensor.name: tensor for tensor in graph.initializer}
        constants = (node for node in graph.node if node.op_type == "Constant")
        found |= {node.output[0]: one.t for node in constants for one in node.attribute if one.HasField("t")}
    return found


def neighbours(graph: GraphProto) -> tuple[dict[str, NodeProto], dict[str, NodeProto]]:
    """`makers_of`; and of each name an operator that reads it, which is the only one where `uses` counts one."""
    return makers_of(graph), {name: node for node in graph.node for name in node.input}


def computed(node: NodeProto, weights: Weights) -> list[str]:
    """What an operator reads that is no constant of the main graph, each once."""
    return [name for name in dict.fromkeys(node.input) if name and name not in weights]


def channels_last(rank: int) -> list[int]:
    """The permutation of axes that puts the second last."""
    return [0, *range(2, rank), 1]


def channels_second(rank: int) -> list[int]:
    """Its inverse."""
    return [0, rank - 1, *range(1, rank - 1)]


def read_by(node: NodeProto) -> Iterator[str]:
    """The names that an operator reads, and what stands in its inner graphs; one that is left out has no name."""
    yield from node.input
    for inner in subgraphs(node):
        yield from _reads(inner)


def rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Reads `names[x]` wherever x was read, chains followed, subgraphs included."""
    if not names:
        return

    def final(name: str) -> str:
        while name in names:
            name = names[name]
        return name

    for found in nested(graph):
        for node in found.node:
            for position, name in enumerate(node.input):
                if name in names:
                    node.input[position] = final(name)


def replace_nodes(graph: GraphProto, nodes: Iterable[NodeProto]) -> None:
    """Makes `nodes` the operators of the graph."""
    kept = list(nodes)
    copy = GraphProto()
    copy.node.extend(kept)
    del graph.node[:]
    graph.node.extend(copy.node)


def rewrite(graph: GraphProto, change: Callable[[NodeProto], Sequence[NodeProto]]) -> int:
    """Puts the operators that `change` makes of one in its place; those of which it makes none stay. How many were replaced."""
    nodes, count = list[NodeProto](), 0
    for node in graph.node:
        made = change(node)
        count += bool(made)
        nodes += made or [node]
    if count:
        replace_nodes(graph, nodes)
    return count


def rewrite_ends(graph: GraphProto, change: Callable[[NodeProto], Sequence[NodeProto]]) -> int:
    """The same where `change` writes the last of several operators: what nobody reads then goes, or it would be taken for a
    reader."""
    if count := rewrite(graph, change):
        replace_nodes(graph, live(graph))
    return count


def put(graph: GraphProto, written: Mapping[str, Sequence[NodeProto]]) -> int:
    """The same of what is already `written`, by the first result of each operator that it stands in place of."""
    return rewrite_ends(graph, lambda node: written.get(node.output[0], ()) if node.output else ())


def told(number: int, one: str, many: str) -> str | None:
    """So many of what was done, as a sentence; None where nothing was."""
    return f"{number} {one if number == 1 else many}" if number else None


def live(graph: GraphProto) -> list[NodeProto]:
    """Operators that the outputs of the network depend on, in their order."""
    read, kept = {value.name for value in graph.output}, list[NodeProto]()
    for node in reversed(graph.node):  # who reads comes behind
        if not read.isdisjoint(filter(None, node.output)):
            kept.append(node)
            read.update(read_by(node))
    return kept[::-1]


def prune(model: ModelProto) -> tuple[int, int]:
    """Drops operators, weights and intermediate shapes nobody reads; how many operators and weights went."""
    graph = model.graph
    kept = live(graph)
    gone = len(graph.node) - len(kept)
    if gone:
        replace_nodes(graph, kept)
    idle = drop_unread_weights(graph)
    del graph.value_info[:]
    return gone, idle


def drop_unread_weights(graph: GraphProto) -> int:
    """How many went."""
    read = {*_reads(graph)}
    idle = [index for index, tensor in enumerate(graph.initializer) if tensor.name not in read]
    for index in reversed(idle):
        del graph.initializer[index]
    return len(idle)
