"""Channel shuffles (Zhang et al. 2018, ShuffleNet) with the channels last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import (
    Weights,
    attribute,
    channels_last,
    channels_second,
    has_convolutions,
    neighbours,
    put,
    set_attributes,
    told,
    uses,
)
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

SWAPPED = [0, 2, 1, 3, 4]
"""What makes a shuffle of [N, groups, channels of a group, H, W]."""


@dataclass(frozen=True)
class _Shuffle:
    """Its first Reshape and its last, the concatenation whose only reader it is and the Split that alone reads it."""

    first: NodeProto
    last: NodeProto
    joined: NodeProto | None
    divided: NodeProto | None
    grouped: tuple[int, ...]

    @property
    def results(self) -> list[str]:
        return list((self.divided or self.last).output)


def shuffles_with_channels_last(model: ModelProto) -> str | None:
    """Shuffles of channels, what they concatenate and what is split of them, are written in NHWC between transpositions.

    A convolution's layout does not pass through a Reshape, so that each shuffle was computed in NCHW: of a ShuffleNet V2
    one operator in four was a transposition. What is transposed and transposed back cancels once the layout is there.
    """
    # What Split divides is an attribute before.
    if opset(model) < 13 or not has_convolutions(model):
        return None
    graph, readers = model.graph, uses(model)
    makers, reading = neighbours(graph)
    shapes, weights = tensor_shapes(model), Weights(graph)
    written: dict[str, list[NodeProto]] = {}
    for last in graph.node:
        shuffle = _shuffle(last, makers, reading, readers, shapes)
        if shuffle is not None:
            written[shuffle.results[0]] = _written(shuffle, weights)
    return told(
        put(graph, written),
        "shuffle of channels was written with the channels last",
        "shuffles of channels were written with the channels last",
    )


def _shuffle(
    last: NodeProto,
    makers: Mapping[str, NodeProto],
    reading: Mapping[str, NodeProto],
    readers: Mapping[str, int],
    shapes: Mapping[str, TensorShape],
) -> _Shuffle | None:
    """The shuffle that ends with the Reshape `last`, where it is one."""

    def before(node: NodeProto | None, kind: str) -> NodeProto | None:
        found = makers.get(node.input[0]) if node is not None else None
        return found if found is not None and found.op_type == kind and readers[found.output[0]] == 1 else None

    swap = before(last, "Transpose") if last.op_type == "Reshape" else None
    first = before(swap, "Reshape")
    if first is None or swap is None or list(attribute(swap, "perm", [])) != SWAPPED:
        return None
    source, grouped, result = (
        shape.static if shape is not None else None
        for shape in (shapes.get(name) for name in (first.input[0], first.output[0], last.output[0]))
    )
    if source is None or grouped is None or len(source) != 4 or result != source or len(grouped) != 5:
        return None
    if grouped[1] * grouped[2] != source[1] or grouped[3:] != source[2:]:
        return None
    joined = before(first, "Concat")
    divided = reading.get(last.output[0]) if readers[last.output[0]] == 1 else None
    return _Shuffle(
        first,
        last,
        joined if joined is not None and _along_channels(joined) else None,
        divided if divided is not None and divided.op_type == "Split" and _along_channels(divided) else None,
        tuple(grouped),
    )


def _along_channels(node: NodeProto) -> bool:
    """Of an image, where every output has a name."""
    return attribute(node, "axis", 0) in (1, -3) and all(node.output)


def _written(shuffle: _Shuffle, weights: Weights) -> list[NodeProto]:
    end = shuffle.last.output[0]
    batch, groups, channels, *area = shuffle.grouped
    made: list[NodeProto] = []

    def add(kind: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: object) -> str:
        made.append(helper.make_node(kind, list(inputs), list(outputs), **attributes))
        return outputs[0]

    def reshaped(source: str, sizes: Sequence[int], output: str) -> str:
        return add("Reshape", [source, weights.put(f"{output}__sizes", np.asarray(sizes, np.int64))], [output])

    sources = shuffle.joined.input if shuffle.joined is not None else shuffle.first.input[:1]
    parts = [
        add("Transpose", [one], [f"{end}__from{place}"], perm=channels_last(4)) for place, one in enumerate(sources)
    ]
    whole = parts[0] if len(parts) == 1 else add("Concat", parts, [f"{end}__joined"], axis=3)
    grouped = reshaped(whole, [batch, *area, groups, channels], f"{end}__grouped")
    swapped = add("Transpose", [grouped], [f"{end}__swapped"], perm=[0, 1, 2, 4, 3])
    shuffled = reshaped(swapped, [batch, *area, groups * channels], f"{end}__shuffled")
    found = [shuffled]
    if shuffle.divided is not None:
        found = [f"{name}__last" for name in shuffle.results]
        copy = NodeProto()
        copy.CopyFrom(shuffle.divided)
        copy.input[0] = shuffled
        copy.output[:] = found
        set_attributes(copy, axis=3)
        made.append(copy)
    for one, result in zip(found, shuffle.results, strict=True):
        add("Transpose", [one], [result], perm=channels_second(4))
    return made
