"""How large the tables are in which integer inputs look something up, and how far those go that are lengths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod

from onnx import ModelProto, NodeProto, TensorProto

from workers.networks.graph import HANDING_ON, attribute
from workers.networks.inspect import real_inputs
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.subgraphs import nested

_HANDING_ON = HANDING_ON | {"Cast"}
_COMPARING = frozenset({"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
_ASKING = _COMPARING | {"Shape", "Size", "ArgMax", "ArgMin"}
"""Any integer is as good as another to these."""
_INDICES = frozenset({TensorProto.INT32, TensorProto.INT64})


def vocabularies(model: ModelProto) -> dict[str, int]:
    """By integer input, how many rows the smallest of its tables has; without inputs that are read in any other way too, of
    which nobody knows what they may be. An embedding of which two rows are ever asked is hardly verified."""
    asking = [value.name for value in real_inputs(model) if value.type.tensor_type.elem_type in _INDICES]
    if not asking:
        return {}
    readers = defaultdict[str, list[tuple[NodeProto, int]]](list)
    for graph in nested(model.graph):
        for node in graph.node:
            for place, name in enumerate(node.input):
                readers[name].append((node, place))
    shapes = tensor_shapes(model)
    found = {name: list(_rows(name, readers, shapes)) for name in asking}
    return {name: min(rows) for name, rows in found.items() if rows and min(rows) > 0}


def _rows(
    name: str, readers: Mapping[str, list[tuple[NodeProto, int]]], shapes: Mapping[str, TensorShape]
) -> Iterator[int]:
    """Of every table that `name` is an index of, and one more than what it is compared with is long, as with the numbers of
    frames; 0 where it is read otherwise."""
    waiting, followed = [name], set[str]()
    while waiting:
        read = waiting.pop()
        if read in followed:
            continue
        followed.add(read)
        for node, place in readers.get(read, ()):
            if node.op_type == "Gather" and place == 1:
                table = shapes.get(node.input[0])
                sizes = table.static if table is not None else None
                yield sizes[attribute(node, "axis", 0)] if sizes else 0
            elif node.op_type in _HANDING_ON and place == 0 and (_is_index(node) or _compared(node, readers)):
                waiting.append(node.output[0])
            elif node.op_type in _COMPARING and (
                frames := _longer(shapes.get(node.input[1 - place]), shapes.get(read))
            ):
                yield frames + 1
            elif node.op_type not in _ASKING:
                yield 0


def _is_index(node: NodeProto) -> bool:
    """Whether what it hands on may still be one."""
    return attribute(node, "to", TensorProto.INT64) in _INDICES


def _compared(node: NodeProto, readers: Mapping[str, list[tuple[NodeProto, int]]]) -> bool:
    """Whether what it makes is compared, and nothing else."""
    reading = readers.get(node.output[0], ())
    return bool(reading) and all(reader.op_type in _COMPARING for reader, _ in reading)


def _longer(other: TensorShape | None, this: TensorShape | None) -> int:
    """The longest axis of what has more elements than this; 0 where it has not, as a number that a mask is compared with."""
    theirs, own = (shape.static if shape is not None else None for shape in (other, this))
    return max(theirs) if theirs and own is not None and prod(theirs) > prod(own) else 0
