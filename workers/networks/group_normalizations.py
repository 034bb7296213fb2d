"""Normalisations of groups of channels (Wu and He 2018), and of each alone, by statistics of channels.

As exporters write them, what is normalised together is a row of its own: a convolution's layout does not pass through that, and
an image with the channels last was transposed twice for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Weights, attribute, has_convolutions, replace_nodes, told, uses
from workers.networks.inspect import opset
from workers.networks.normalizations import along
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes

BY_GROUP, BY_ROW = "GroupNormalization", "InstanceNormalization"


@dataclass(frozen=True)
class _Grouped:
    """What `node` normalises is the image (or signal, or volume) `source` of this `shape`, and becomes `result` in place of
    `gone`."""

    node: NodeProto
    source: str
    shape: tuple[int, ...]
    groups: int
    result: str
    gone: tuple[NodeProto, ...]


def groups_by_channels(model: ModelProto) -> str | None:
    """Of networks with convolutions: the layout of others keeps such rows together."""
    if not has_convolutions(model):
        return None
    graph, readers, shapes, weights = model.graph, uses(model), tensor_shapes(model), Weights(model.graph)
    makers = {name: node for node in graph.node for name in node.output}
    reading = {name: node for node in graph.node for name in node.input}
    written: dict[str, list[NodeProto]] = {}
    gone: set[str] = set()
    for node in graph.node:
        found = _grouped(node, makers, reading, readers, shapes)
        if found is not None and all(name in weights for name in node.input[1:]):
            written[found.result] = _written(found, weights, shapes[found.source].dtype, opset(model))
            gone.update(one.output[0] for one in found.gone)
    nodes = (written.get(node.output[0], [] if node.output[0] in gone else [node]) for node in graph.node)
    replace_nodes(graph, [one for made in nodes for one in made])
    return told(len(written), "normalisation was written by channels", "normalisations were written by channels")


def _grouped(
    node: NodeProto,
    makers: Mapping[str, NodeProto],
    reading: Mapping[str, NodeProto],
    readers: Mapping[str, int],
    shapes: Mapping[str, TensorShape],
) -> _Grouped | None:
    if node.op_type not in (BY_GROUP, BY_ROW):
        return None
    rows = _static(shapes, node.input[0])
    if len(rows) < 3:
        return None
    before, behind = makers.get(node.input[0]), reading.get(node.output[0])
    if node.op_type == BY_GROUP or before is None or before.op_type != "Reshape":
        return _Grouped(node, node.input[0], rows, attribute(node, "num_groups", rows[1]), node.output[0], (node,))
    image = _static(shapes, before.input[0])
    if behind is None or behind.op_type != "Reshape" or readers[node.output[0]] != 1:
        return None
    if _static(shapes, behind.output[0]) != image or len(image) < 3 or rows[0] != image[0] or image[1] % rows[1]:
        return None
    return _Grouped(node, before.input[0], image, rows[1], behind.output[0], (node, behind))


def _static(shapes: Mapping[str, TensorShape], name: str) -> tuple[int, ...]:
    """Empty where it is not known."""
    return (shapes[name].static if name in shapes else None) or ()


def _written(found: _Grouped, weights: Weights, dtype: int, version: int) -> list[NodeProto]:
    """Mean and variance of each channel, of these those of a group, and all as a product and a sum."""
    batch, channels, *area = found.shape
    ones = [1] * len(area)
    apart, together = [batch, found.groups, channels // found.groups], [batch, channels, *ones]
    made: list[NodeProto] = []

    def add(kind: str, part: str, *inputs: str, **attributes: object) -> str:
        made.append(helper.make_node(kind, inputs, [f"{found.result}__{part}"], **attributes))
        return f"{found.result}__{part}"

    def number(word: str, value: object, kind: type = np.int64) -> str:
        return weights.put(f"{found.result}__{word}", np.asarray(value, kind))

    def mean(of: str, part: str, axes: list[int]) -> str:
        inputs, given = along(axes, f"{found.result}__{part}", weights, version)
        return add("ReduceMean", part, of, *inputs, **given)

    def of_groups(of: str, part: str) -> str:
        """[batch, groups, 1] of [batch, channels, 1, ...]."""
        return mean(add("Reshape", f"{part}_apart", of, apart_sizes), f"{part}_of_groups", [2])

    kind = helper.tensor_dtype_to_np_dtype(dtype)
    apart_sizes, together_sizes = number("apart", apart), number("together", together)
    along_area = [*range(2, 2 + len(area))]
    means = mean(found.source, "mean", along_area)
    if found.groups < channels:
        spread = add("Expand", "mean_spread", of_groups(means, "mean"), apart_sizes)
        means = add("Reshape", "mean_together", spread, together_sizes)
    rest = add("Sub", "rest", found.source, means)
    variance = of_groups(mean(add("Mul", "squares", rest, rest), "variance", along_area), "variance")
    least = add("Add", "least", variance, number("epsilon", attribute(found.node, "epsilon", 1e-5), kind))
    scale, shift = (_by_channel(weights.get(name), found.groups, channels) for name in found.node.input[1:3])
    quotient = add("Div", "quotient", number("scale", scale, kind), add("Sqrt", "deviation", least))
    factor = add("Reshape", "factor", quotient, together_sizes)
    back = add("Mul", "back", means, factor)
    offset = add("Sub", "offset", number("shift", shift.reshape(1, channels, *ones), kind), back)
    add("Add", "sum", add("Mul", "scaled", found.source, factor), offset)
    made[-1].output[0] = found.result
    return made


def _by_channel(values: Array, groups: int, channels: int) -> Array:
    """[1, groups, channels of a group] of numbers of channels or of groups."""
    return np.broadcast_to(values.reshape(1, groups, -1), (1, groups, channels // groups))
