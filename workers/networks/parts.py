"""Parts of one place along an axis that is dropped, as PyTorch's unbind is exported: queries, keys, values of an attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import zip_longest

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, has_convolutions, makers_of, operator_types, rewrite_ends, told
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes

Place = tuple[str, int, int]
"""What is read, along which axis, and where."""
MOST = 4
"""Parts of one tensor: of many, as the steps of a sequence, one operator that makes all is better."""
USUAL: tuple[list[int], ...] = ([], [], [0], [1])
"""Starts, ends, axes and steps of a Slice that does not name them; of the first two it has its own."""
PICTURES = 5
"""Axes from which on what is taken apart in a network with convolutions is none of their pictures, whose layout passes through
slices and through no Gather."""


def places_of_parts(model: ModelProto) -> str | None:
    """A Squeeze or Reshape of a Slice, or of a part of a Split, of one place is one of a Gather of it, which is read where it
    lies: a Split is computed whole, and each of its parts copied."""
    kinds = operator_types(model)
    if not (kinds & {"Slice", "Split"} and kinds & {"Squeeze", "Reshape"}):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    makers = makers_of(model.graph)
    found = {node.output[0]: place for node in model.graph.node if (place := _taken(node, makers, weights, shapes))}
    counts = Counter(place[:2] for place in found.values())
    least = PICTURES if has_convolutions(model) else 0

    def gathered(node: NodeProto) -> list[NodeProto]:
        place = found.get(node.output[0])
        if place is None or counts[place[:2]] > MOST or len(sizes_of(shapes, place[0])) < least:
            return []
        source, axis, begin = place
        where = weights.put(f"{node.output[0]}__place", np.asarray(begin, np.int64))
        if node.op_type == "Squeeze":
            return [helper.make_node("Gather", [source, where], node.output, axis=axis)]
        node.input[0] = f"{node.output[0]}__taken"
        return [helper.make_node("Gather", [source, where], node.input[:1], axis=axis), node]

    count = rewrite_ends(model.graph, gathered)
    return told(count, "part of one place is read where it lies", "parts of one place are read where they lie")


def _taken(
    node: NodeProto, makers: Mapping[str, NodeProto], weights: Weights, shapes: Mapping[str, TensorShape]
) -> Place | None:
    """What a Squeeze, or a Reshape to sizes of its own, leaves of what it reads, where that is one place."""
    maker = makers.get(node.input[0]) if node.op_type in ("Squeeze", "Reshape") and len(node.input) > 1 else None
    if maker is None or node.input[1] not in weights:
        return None
    found, given = _place(maker, node.input[0], weights, shapes), weights.get(node.input[1]).reshape(-1).tolist()
    if found is None:
        return None
    if node.op_type == "Reshape":
        return found if 0 not in given else None
    return found if [axis % len(sizes_of(shapes, found[0])) for axis in given] == [found[1]] else None


def _place(maker: NodeProto, name: str, weights: Weights, shapes: Mapping[str, TensorShape]) -> Place | None:
    sizes = sizes_of(shapes, maker.input[0]) if maker.op_type in ("Slice", "Split") else ()
    if not sizes:
        return None
    if maker.op_type == "Split":
        axis = attribute(maker, "axis", 0) % len(sizes)
        parts = [sizes_of(shapes, part)[axis : axis + 1] for part in maker.output]
        ones = parts == [(1,)] * sizes[axis]
        return (maker.input[0], axis, list(maker.output).index(name)) if ones else None
    if any(one and one not in weights for one in maker.input[1:]):
        return None
    given: list[list[int]] = [weights.get(one).reshape(-1).tolist() if one else [] for one in maker.input[1:]]
    starts, ends, axes, steps = (one or usual for one, usual in zip_longest(given, USUAL, fillvalue=list[int]()))
    if len(starts) != 1 or len(ends) != 1 or steps != [1]:
        return None
    axis = axes[0] % len(sizes)
    begin, end, _ = slice(starts[0], ends[0]).indices(sizes[axis])
    return (maker.input[0], axis, begin) if end - begin == 1 else None
