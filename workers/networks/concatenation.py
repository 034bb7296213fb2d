"""Concatenated channels that need not be copied together."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, joins_channels, makers_of, put, rewired, rewrite_ends, told, uses
from workers.networks.padding import CHANNELWISE

MOST = 4
"""Concatenated tensors; each one more is a convolution more, with a shorter sum."""
POOLS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"})


def pool_before_concatenation(model: ModelProto) -> str | None:
    """Pooling keeps channels apart: done before a concatenation that nothing else reads, it leaves less to copy."""
    readers, makers = uses(model), makers_of(model.graph)

    def moved(node: NodeProto) -> list[NodeProto]:
        joined = makers.get(node.input[0]) if node.op_type in POOLS and len(node.output) == 1 else None
        if joined is None or not joins_channels(joined) or readers[joined.output[0]] != 1:
            return []
        pools = [rewired(node, [part], f"{node.output[0]}__{place}") for place, part in enumerate(joined.input)]
        return [*pools, helper.make_node("Concat", [pool.output[0] for pool in pools], node.output, axis=1)]

    count = rewrite_ends(model.graph, moved)
    return told(count, "pooling was moved before a concatenation", "poolings were moved before a concatenation")


def split_convolutions(model: ModelProto) -> str | None:
    """conv(concat(a, b), W) = conv(a, W_a) + conv(b, W_b): the concatenation's copy goes, a sum of outputs comes.

    Where every reader is a convolution and the sums move less than the copy did: a SqueezeNet's concatenations are a tenth
    of its time.
    """
    graph, readers = model.graph, uses(model)
    weights, makers = Weights(graph), makers_of(graph)
    readers_of = defaultdict[str, list[NodeProto]](list)
    for node in graph.node:
        for name in set(node.input):
            readers_of[name].append(node)
    written: dict[str, list[NodeProto]] = {}
    for joined in graph.node:
        if not joins_channels(joined) or not 2 <= len(joined.input) <= MOST:
            continue
        parts = [_channels(name, makers, weights) for name in joined.input]
        reading = readers_of[joined.output[0]]
        if not reading or readers[joined.output[0]] != len(reading) or any(part is None for part in parts):
            continue
        sizes = [part for part in parts if part is not None]
        if not all(_splits(node, joined.output[0], sum(sizes), weights) for node in reading):
            continue
        if sum(_moved(node, len(sizes), weights) for node in reading) > sum(sizes):
            continue
        for node in reading:
            written[node.output[0]] = _split(node, joined.input, sizes, weights)
    what = "split, each part reading what was concatenated for"
    return told(put(graph, written), f"convolution was {what} it", f"convolutions were {what} them")


def _channels(name: str, makers: dict[str, NodeProto], weights: Weights) -> int | None:
    """Channels of a tensor that comes from a convolution through channelwise operators; None where that is not known."""
    while name in makers and makers[name].op_type in CHANNELWISE:
        name = makers[name].input[0]
    conv = makers.get(name)
    if conv is None or conv.op_type != "Conv" or conv.input[1] not in weights:
        return None
    return len(weights.get(conv.input[1]))


def _splits(node: NodeProto, joined: str, channels: int, weights: Weights) -> bool:
    return (
        node.op_type == "Conv"
        and list(node.input).count(joined) == 1
        and node.input[0] == joined
        and attribute(node, "group", 1) == 1
        and node.input[1] in weights
        and weights.get(node.input[1]).shape[1] == channels
    )


def _moved(node: NodeProto, parts: int, weights: Weights) -> float:
    """Values written and read again for the sums, per value of one channel of the input."""
    shrinks: int = math.prod(attribute(node, "strides", [1]))
    return 2.0 * (parts - 1) * len(weights.get(node.input[1])) / shrinks


def _split(node: NodeProto, parts: Sequence[str], sizes: Sequence[int], weights: Weights) -> list[NodeProto]:
    filters = np.split(weights.get(node.input[1]), np.cumsum(sizes)[:-1], axis=1)
    made: list[NodeProto] = []
    total = ""
    for place, (part, values) in enumerate(zip(parts, filters, strict=True)):
        bias = list(node.input[2:]) if place == 0 else []
        name = f"{node.output[0]}__{place}"
        made.append(rewired(node, [part, weights.put(f"{node.input[1]}__{place}", values), *bias], name))
        if total:
            last = place == len(parts) - 1
            made.append(helper.make_node("Add", [name, total], [node.output[0] if last else f"{name}__sum"]))
        total = made[-1].output[0]
    return made
