"""How large the tables are in which integer inputs look something up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from onnx import ModelProto, NodeProto, TensorProto

from workers.networks.graph import HANDING_ON, attribute
from workers.networks.inspect import real_inputs
from workers.networks.shape import TensorShape, nested
from workers.networks.shapes import tensor_shapes

_HANDING_ON = HANDING_ON | {"Cast"}
_ASKING = frozenset({"Shape", "Size", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
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
    """Of every table that `name` is an index of; 0 where it is read otherwise."""
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
            elif node.op_type in _HANDING_ON and place == 0 and attribute(node, "to", TensorProto.INT64) in _INDICES:
                waiting.append(node.output[0])
            elif node.op_type not in _ASKING:
                yield 0
