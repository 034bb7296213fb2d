"""Indices that stay within what they are read from: programs look nothing up, they add an index to an address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper

from workers.networks.errors import NetworkError, shown
from workers.networks.graph import Array, Weights, attribute, replace_nodes
from workers.networks.shape import TensorShape, nested
from workers.networks.shapes import tensor_shapes

ALONG_AXIS = frozenset({"Gather", "GatherElements", "Scatter", "ScatterElements"})
PLACES = frozenset({"GatherND", "ScatterND"})
FLAT = frozenset({"MaxUnpool"})
"""Of the whole output, counted from the front alone."""
LOOKING_UP = ALONG_AXIS | PLACES | FLAT
LOOKED_UP, INDICES = 0, 1
"""Places of their inputs."""
FOREIGN = "EmbedLayerNormalization"
"""ONNX Runtime's, which looks up in three tables at once."""


def bounded_indices(model: ModelProto) -> str | None:
    """Constant indices are within what they are read from or written to, and others are made to be: ONNX has no meaning for
    those beyond, and a compiled program reads or writes whatever lies there. Raises NetworkError for a constant one beyond, and
    where nobody knows how much there is."""
    graphs = [*nested(model.graph)]
    if not any(node.op_type in LOOKING_UP or node.op_type == FOREIGN for graph in graphs for node in graph.node):
        return None
    bounding = _Bounding(model)
    # Those inside of an operator first: replacing it takes along what it holds.
    bounded = sum(bounding.bounded(graph) for graph in reversed(graphs))
    return f"{bounded} computed indices were kept within what they are read from" if bounded else None


@dataclass(frozen=True)
class _Bounds:
    """The least and the largest index, one number or one for each axis."""

    least: Array
    most: Array


class _Bounding:
    def __init__(self, model: ModelProto) -> None:
        self._weights, self._shapes, self._count = Weights(model.graph), tensor_shapes(model), 0

    def bounded(self, graph: GraphProto) -> int:
        """Gives the operators of `graph` their bounds; how many needed some."""
        nodes: list[NodeProto] = []
        clipped: dict[tuple[str, bytes], str] = {}
        for node in graph.node:
            if node.op_type == FOREIGN:
                raise _refused(
                    node, "it looks up in several tables at once", "export the network with standard operators"
                )
            if node.op_type in LOOKING_UP:
                indices, bounds = node.input[INDICES], _bounds(node, self._shapes)
                if indices in self._weights:
                    self._check(node, bounds)
                else:
                    key = indices, bounds.most.tobytes()
                    if key not in clipped:
                        clipped[key] = f"{indices}__within_{self._count}"
                        self._count += 1
                        nodes += self._clip(indices, bounds, clipped[key])
                    node.input[INDICES] = clipped[key]
            nodes.append(node)
        if clipped:
            replace_nodes(graph, nodes)
        return len(clipped)

    def _check(self, node: NodeProto, bounds: _Bounds) -> None:
        indices = self._weights.get(node.input[INDICES])
        beyond = (indices < bounds.least) | (indices > bounds.most)
        if beyond.any():
            within = f"from {np.min(bounds.least)} to {np.max(bounds.most)}"
            reason = f"its index {indices[beyond].flat[0]} lies beyond what it is read from or written to ({within})"
            raise _refused(node, reason, "correct the index and export the network again")

    def _clip(self, indices: str, bounds: _Bounds, output: str) -> list[NodeProto]:
        dtype = helper.tensor_dtype_to_np_dtype(self._shapes[indices].dtype)
        names = [
            self._weights.put(f"{output}__{word}", values.astype(dtype))
            for word, values in (("least", bounds.least), ("most", bounds.most))
        ]
        if not bounds.most.ndim:
            return [helper.make_node("Clip", [indices, *names], [output])]
        least, most = names
        under = f"{output}__under"
        return [helper.make_node("Min", [indices, most], [under]), helper.make_node("Max", [under, least], [output])]


def _bounds(node: NodeProto, shapes: Mapping[str, TensorShape]) -> _Bounds:
    found = shapes.get(node.output[0] if node.op_type in FLAT else node.input[LOOKED_UP])
    indices = shapes.get(node.input[INDICES])
    sizes = found.static if found is not None else None
    if not sizes or indices is None:
        raise _refused(node, "how much it may look up in is not known", "export the network with fixed sizes")
    if node.op_type in FLAT:
        return _Bounds(np.asarray(0), np.asarray(prod(sizes) - 1))
    if node.op_type in ALONG_AXIS:
        axis = attribute(node, "axis", 0)
        extents = np.asarray(sizes[axis] if -len(sizes) <= axis < len(sizes) else 0)
    else:
        first, many = attribute(node, "batch_dims", 0), (indices.static or (0,))[-1]
        extents = np.asarray(sizes[first : first + many] if first + many <= len(sizes) else 0)
    if not extents.all():
        raise _refused(
            node, "there is nothing that it could look up", "correct its axis, or export without empty tensors"
        )
    return _Bounds(-extents, extents - 1)


def _refused(node: NodeProto, reason: str, next_step: str) -> NetworkError:
    named = shown(node.name or next(iter(node.output), "?"))
    return NetworkError(f"Node {named} ({node.op_type})", reason, next_step)
