"""Constants in forms of their own as tensors like any others: TVM reads neither sparse ones nor numbers in attributes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from workers.networks.errors import NetworkError
from workers.networks.folding import LARGEST
from workers.networks.graph import told
from workers.networks.subgraphs import nested

_NUMBERS = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
"""What a Constant may be written in, and what it is then."""


def whole_weights(model: ModelProto) -> str | None:
    """Sparse weights are filled up. Raises NetworkError where they, all together, would be too large."""
    elements = 0
    for name, sparse in _sparse(model):
        elements += prod(sparse.dims)
        if elements > LARGEST:
            reason = f"it is sparse, and sparse weights would be more than {LARGEST} elements once they are filled up"
            raise NetworkError(name, reason, "export the network with fewer or smaller sparse weights")
    if not elements:
        return None
    filled = 0
    for graph in nested(model.graph):
        graph.initializer.extend(_filled(sparse, sparse.values.name) for sparse in graph.sparse_initializer)
        filled += len(graph.sparse_initializer)
        del graph.sparse_initializer[:]
        for node in graph.node:
            for found in _written_as(node, "sparse_value"):
                found.CopyFrom(helper.make_attribute("value", _filled(found.sparse_tensor, "")))
                filled += 1
    return told(filled, "sparse weight was filled up", "sparse weights were filled up")


def constants_in_branches(model: ModelProto) -> str | None:
    """Those in the main graph are folded, whatever they are written in; others become tensors."""
    for graph in list(nested(model.graph))[1:]:
        for node in graph.node:
            for found in _written_as(node, *_NUMBERS):
                values = np.asarray(helper.get_attribute_value(found), _NUMBERS[found.name])
                found.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(values)))
    return None


def _sparse(model: ModelProto) -> Iterator[tuple[str, SparseTensorProto]]:
    for graph in nested(model.graph):
        yield from ((sparse.values.name, sparse) for sparse in graph.sparse_initializer)
        for node in graph.node:
            yield from ((node.output[0], found.sparse_tensor) for found in _written_as(node, "sparse_value"))


def _written_as(node: NodeProto, *forms: str) -> list[AttributeProto]:
    return [found for found in node.attribute if found.name in forms] if node.op_type == "Constant" else []


def _filled(sparse: SparseTensorProto, name: str) -> TensorProto:
    """Its places are counted through, or given axis by axis."""
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    filled = np.zeros(prod(sparse.dims), values.dtype)
    filled[places if places.ndim == 1 else np.ravel_multi_index(tuple(places.T), tuple(sparse.dims))] = values
    return numpy_helper.from_array(filled.reshape(tuple(sparse.dims)), name)
