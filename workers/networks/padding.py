"""Channels padded to whole vectors, where the padding costs nothing to take off again."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, replace_nodes, told, uses

LANES = 16
"""float32 of the widest vectors in use. Accumulators of a part of a vector do not stay in registers."""
WORTH = 64
"""Fewer channels are one vector or a few: a rest hardly counts."""
CHANNELWISE = frozenset({"Relu", "LeakyRelu", "AveragePool", "MaxPool"})
"""Operators that keep channels apart, so that the padding passes through."""
ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Round"})
"""So do these, with constants that are one number or one a channel."""


def pad_channels(model: ModelProto) -> str | None:
    """A convolution whose channels are no whole vectors gets filters of zeros, taken off behind the global pooling.

    Only where nothing but channelwise operators stand between: there one value a channel is left to be picked. A
    classifier's last convolution with 1,000 channels reaches two thirds of the speed of one with 1,008.
    """
    graph = model.graph
    weights, readers = Weights(graph), uses(model)
    makers = {name: node for node in graph.node for name in node.output}
    behind: dict[str, NodeProto] = {}
    for node in graph.node:
        chain = _chain(node, makers, readers, weights) if node.op_type == "GlobalAveragePool" else None
        channels = None if chain is None else _pad(chain, weights, readers)
        if channels is not None:
            pick = _pick(node, channels, weights)
            behind[pick.input[0]] = pick
    if not behind:
        return None
    replace_nodes(graph, [one for node in graph.node for one in (node, *_following(node, behind))])
    return told(
        len(behind),
        "convolution was padded to whole vectors of channels",
        "convolutions were padded to whole vectors of channels",
    )


class _Chain(NamedTuple):
    """A convolution, and the constants behind it: the operator that reads each, and its place there."""

    conv: NodeProto
    constants: list[tuple[NodeProto, int]]


def _chain(pool: NodeProto, makers: dict[str, NodeProto], readers: dict[str, int], weights: Weights) -> _Chain | None:
    """The convolution in front of the pooling, if only operators that keep channels apart, with one reader, stand between."""
    name = pool.input[0]
    constants: list[tuple[NodeProto, int]] = []
    while name in makers and readers[name] == 1:
        maker = makers[name]
        if maker.op_type == "Conv":
            return _Chain(maker, constants)
        read = [one for one in maker.input if one not in weights]
        if len(maker.output) > 1 or len(read) != 1 or maker.op_type not in CHANNELWISE | ARITHMETIC:
            return None
        constants += [(maker, place) for place, one in enumerate(maker.input) if one in weights]
        name = read[0]
    return None


def _pad(chain: _Chain, weights: Weights, readers: dict[str, int]) -> int | None:
    """Pads the filters; returns how many channels there were, None where it does not pay or cannot be done."""
    conv = chain.conv
    own = list(conv.input[1:])
    if attribute(conv, "group", 1) != 1 or any(name not in weights or readers[name] != 1 for name in own):
        return None
    filters = weights.get(conv.input[1])
    channels = len(filters)
    extra = -channels % LANES
    if not extra or channels < WORTH or filters.dtype != np.float32:
        return None
    by_channel = (1, channels, *(1,) * (filters.ndim - 2))
    shapes = [weights.get(node.input[place]).shape for node, place in chain.constants]
    if any(shape != by_channel and (math.prod(shape) > 1 or len(shape) > filters.ndim) for shape in shapes):
        return None
    for place in range(1, len(conv.input)):
        _widen(weights, conv, place, 0, extra, 0.0)
    for (node, place), shape in zip(chain.constants, shapes, strict=True):
        if shape == by_channel:
            _widen(weights, node, place, 1, extra, 1.0)
    return channels


def _widen(weights: Weights, node: NodeProto, position: int, axis: int, extra: int, value: float) -> None:
    name = node.input[position]
    values = weights.get(name)
    room = [(0, extra if place == axis else 0) for place in range(values.ndim)]
    node.input[position] = weights.put(f"{name}__padded", np.pad(values, room, constant_values=value))


def _pick(pool: NodeProto, channels: int, weights: Weights) -> NodeProto:
    """Renames the pooling's output and makes the operator that picks the real channels from it."""
    name = pool.output[0]
    pool.output[0] = f"{name}__padded"
    kept = weights.put(f"{name}__channels", np.arange(channels, dtype=np.int64))
    return helper.make_node("Gather", [pool.output[0], kept], [name], axis=1)


def _following(node: NodeProto, behind: dict[str, NodeProto]) -> list[NodeProto]:
    """What picks the channels of this pooling, by the name of its padded output."""
    return [behind[name] for name in node.output if name in behind]
