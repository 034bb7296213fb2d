"""Indices that stay within what they are read from: programs look nothing up, they add an index to an address."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from workers.networks.errors import NetworkError, shown
from workers.networks.graph import Array, Weights, attribute, constants_of, replace_nodes, told
from workers.networks.shapes import skeleton, tensor_shapes
from workers.networks.structure import opset
from workers.networks.subgraphs import nested

ALONG_AXIS = frozenset({"Gather", "GatherElements", "Scatter", "ScatterElements"})
PLACES = frozenset({"GatherND", "ScatterND"})
FLAT = frozenset({"MaxUnpool"})
"""Of the whole output, counted from the front alone, as the regions' pictures are too."""
REGIONS = frozenset({"RoiAlign"})
INDICES = {**dict.fromkeys(ALONG_AXIS | PLACES | FLAT, 1), **dict.fromkeys(REGIONS, 2)}
"""Places of inputs that are indices, of all that looks up; the first input is what it looks up in."""
EVERYWHERE = frozenset({-1, 0})
"""Indices that whatever is not empty has."""
CLIPS_BY_INPUTS = 12
"""The operator set from which on Clip takes whole numbers, by inputs."""


def bounded_indices(model: ModelProto) -> str | None:
    """Constant indices are within what they are read from or written to, and others are made to be: ONNX has no meaning for
    those beyond, and a compiled program reads or writes whatever lies there. Raises NetworkError for a constant one beyond, and
    where nobody knows how much there is."""
    graphs = [*nested(model.graph)]
    if not any(node.op_type in INDICES for graph in graphs for node in graph.node):
        return None
    bounding = _Bounding(model)
    # Those inside of an operator first: replacing it takes along what it holds.
    bounded = sum(bounding.bounded(graph) for graph in reversed(graphs))
    return told(
        bounded,
        "computed index was kept within what it is read from",
        "computed indices were kept within what they are read from",
    )


@dataclass(frozen=True)
class _Bounds:
    """The least and the largest index, one number or one for each axis."""

    least: Array
    most: Array


class _Bounding:
    def __init__(self, model: ModelProto) -> None:
        self._weights, self._shapes, self._count = Weights(model.graph), tensor_shapes(_undeclared(model)), 0
        self._clips = opset(model) >= CLIPS_BY_INPUTS
        self._constants = constants_of(nested(model.graph))
        made = Counter(name for graph in nested(model.graph) for name in _made(graph))
        self._shared = {name for name, graphs in made.items() if graphs > 1}

    def bounded(self, graph: GraphProto) -> int:
        """Gives the operators of `graph` their bounds; how many needed some."""
        nodes: list[NodeProto] = []
        clipped: dict[tuple[str, bytes], str] = {}
        for node in graph.node:
            if node.op_type in INDICES:
                if shared := self._shared.intersection(node.input):
                    reason = f"it reads {shown(min(shared))}, a name that two of the file's graphs use"
                    raise _refused(node, reason, "export the network with a name of its own for each")
                place = INDICES[node.op_type]
                indices, known = node.input[place], self._known(node.input[place])
                if known is None:
                    bounds = self._bounds(node, indices)
                    key = indices, bounds.least.tobytes() + bounds.most.tobytes()
                    if key not in clipped:
                        clipped[key] = f"{indices}__within_{self._count}"
                        self._count += 1
                        nodes += self._clip(indices, bounds, clipped[key])
                    node.input[place] = clipped[key]
                elif node.op_type in FLAT | REGIONS or not EVERYWHERE.issuperset(np.unique(known).tolist()):
                    _check(node, known, self._bounds(node, indices))
            nodes.append(node)
        if clipped:
            replace_nodes(graph, nodes)
        return len(clipped)

    def _known(self, name: str) -> Array | None:
        return np.asarray(numpy_helper.to_array(self._constants[name])) if name in self._constants else None

    def _bounds(self, node: NodeProto, indices: str) -> _Bounds:
        """Raises NetworkError where they are not known."""
        found = self._shapes.get(node.output[0] if node.op_type in FLAT else node.input[0])
        dims = found.dims if found is not None else None
        if node.op_type in PLACES:
            many = (self._shapes[indices].dims or (None,))[-1] if indices in self._shapes else None
            known = self._known(indices)
            many, first = known.shape[-1] if known is not None else many, attribute(node, "batch_dims", 0)
            read = dims[first : first + many] if dims is not None and isinstance(many, int) else None
        elif node.op_type in ALONG_AXIS:
            axis = attribute(node, "axis", 0)
            read = (dims[axis],) if dims is not None and -len(dims) <= axis < len(dims) else None
        else:
            read = dims[:1] if dims is not None and node.op_type in REGIONS else dims
        sizes = [size for size in read or () if isinstance(size, int)]
        if not read or len(sizes) < len(read) or (node.op_type in PLACES and len(read) != many):
            raise _refused(node, "how much it may look up in is not known", "export the network with fixed sizes")
        if not all(sizes):
            raise _refused(node, "there is nothing that it could look up", "export the network without empty tensors")
        if node.op_type in FLAT | REGIONS:
            return _Bounds(np.asarray(0), np.asarray(prod(sizes) - 1))
        extents = np.asarray(sizes if node.op_type in PLACES else sizes[0])
        return _Bounds(-extents, extents - 1)

    def _clip(self, indices: str, bounds: _Bounds, output: str) -> list[NodeProto]:
        if indices not in self._shapes:
            raise NetworkError(indices, "nobody knows what kind of number this index is", "export it with its type")
        dtype = helper.tensor_dtype_to_np_dtype(self._shapes[indices].dtype)
        least, most = (
            self._weights.put(f"{output}__{word}", values.astype(dtype))
            for word, values in (("least", bounds.least), ("most", bounds.most))
        )
        if self._clips and not bounds.most.ndim:
            return [helper.make_node("Clip", [indices, least, most], [output])]
        under = f"{output}__under"
        return [helper.make_node("Min", [indices, most], [under]), helper.make_node("Max", [under, least], [output])]


def _made(graph: GraphProto) -> set[str]:
    """Names that are of this graph: another one inside of an operator may have them too, and mean something else."""
    given = (value.name for value in (*graph.input, *graph.initializer))
    return {*given, *(name for node in graph.node for name in node.output)} - {""}


def _undeclared(model: ModelProto) -> ModelProto:
    """Without what the file says of its outputs: whoever wrote it would say how far an index may go."""
    bare = skeleton(model)
    for value in bare.graph.output:
        value.type.tensor_type.ClearField("shape")
    return bare


def _check(node: NodeProto, indices: Array, bounds: _Bounds) -> None:
    beyond = (indices < bounds.least) | (indices > bounds.most)
    if beyond.any():
        within = f"from {np.min(bounds.least)} to {np.max(bounds.most)}"
        reason = f"its index {indices[beyond].flat[0]} lies beyond what it is read from or written to ({within})"
        raise _refused(node, reason, "correct the index and export the network again")


def _refused(node: NodeProto, reason: str, next_step: str) -> NetworkError:
    named = shown(node.name or next(iter(node.output), "?"))
    return NetworkError(f"Node {named} ({node.op_type})", reason, next_step)
