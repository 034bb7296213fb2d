"""Normalisations of groups of channels (Wu and He 2018), and of each alone, by statistics of channels.

As exporters write them, what is normalised together is a row of its own: a convolution's layout does not pass through that, and
an image with the channels last was transposed twice for each. Where the network is quantised, arithmetic of one number stands
between the rows and their normalisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import (
    Array,
    Parts,
    Weights,
    attribute,
    computed,
    neighbours,
    operator_types,
    put,
    rewired,
    told,
    uses,
)
from workers.networks.normalizations import along
from workers.networks.opsets import OLDEST
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

BY_GROUP, BY_ROW = "GroupNormalization", "InstanceNormalization"
ARITHMETIC = frozenset({"Add", "Clip", "Div", "Mul", "Relu", "Round", "Sub"})
"""What quantisation is written with."""


@dataclass(frozen=True)
class _Grouped:
    """What `node` normalises is the image (or signal, or volume) `source` of this `shape`, and becomes `result`."""

    node: NodeProto
    source: str
    shape: tuple[int, ...]
    groups: int
    result: str


def groups_by_channels(model: ModelProto) -> str | None:
    """Of networks with convolutions: the layout of others keeps such rows together."""
    kinds, version = operator_types(model), opset(model)
    if version < OLDEST or not kinds & {BY_GROUP, BY_ROW} or not kinds & {"Conv", "ConvTranspose"}:
        return None
    if BY_ROW in kinds:
        _bring_rows_near(model)
    graph, readers, shapes, weights = model.graph, uses(model), tensor_shapes(model), Weights(model.graph)
    makers, reading = neighbours(graph)
    written: dict[str, list[NodeProto]] = {}
    rows: set[str] = set()  # which are gone with what was made of them
    for node in graph.node:
        found = _grouped(node, makers, reading, readers, shapes)
        if found is not None and found.source not in rows and _scaled(found, weights):
            written[found.result] = _written(found, weights, shapes[found.source].dtype, version)
            rows.update({node.output[0]} - {found.result})
    count = put(graph, written)
    return told(count, "normalisation was written by channels", "normalisations were written by channels")


def _bring_rows_near(model: ModelProto) -> None:
    """Arithmetic between a normalisation and the Reshapes around it becomes that of the image: before the first of them and
    behind the second."""
    graph, readers, weights = model.graph, uses(model), Weights(model.graph)
    makers, reading = neighbours(graph)
    written: dict[str, list[NodeProto]] = {}

    def between(name: str, beside: Mapping[str, NodeProto]) -> list[NodeProto]:
        """Arithmetic from this tensor to a Reshape that makes or reads it, which comes last; nothing where there is none."""
        found: list[NodeProto] = []
        while readers[name] == 1 and (node := beside.get(name)) is not None:
            found.append(node)
            if node.op_type == "Reshape":
                return found if node.input[1] in weights else []
            if not _of_one_number(node, weights):
                return []
            name = node.output[0] if beside is reading else computed(node, weights)[0]
        return []

    def thread(run: Sequence[NodeProto], order: Sequence[NodeProto]) -> None:
        if len(run) > 1 and written.keys().isdisjoint(one.output[0] for one in run):
            written.update((one.output[0], [one]) for one in _threaded(run, order, weights))

    for node in graph.node:
        if node.op_type == BY_ROW:
            before, behind = between(node.input[0], makers)[::-1], between(node.output[0], reading)
            thread(before, [*before[1:], *before[:1]])
            thread(behind, [*behind[-1:], *behind[:-1]])
    put(graph, written)


def _of_one_number(node: NodeProto, weights: Weights) -> bool:
    """Whether it is arithmetic of one tensor and constants of one number, which add no axes."""
    numbers = all(weights.shape(name) in ((), (1,)) for name in node.input if name in weights)
    return node.op_type in ARITHMETIC and numbers and len(computed(node, weights)) == 1


def _threaded(run: Sequence[NodeProto], order: Sequence[NodeProto], weights: Weights) -> list[NodeProto]:
    """What stands in a `run`, one behind the other, in another order between the same tensors; each reads one that is no
    constant."""
    made, (name,) = list[NodeProto](), computed(run[0], weights)
    for node, before in zip(order, run, strict=True):
        read = computed(node, weights)
        made.append(rewired(node, [name if one in read else one for one in node.input], before.output[0]))
        name = before.output[0]
    return made


def _grouped(
    node: NodeProto,
    makers: Mapping[str, NodeProto],
    reading: Mapping[str, NodeProto],
    readers: Mapping[str, int],
    shapes: Mapping[str, TensorShape],
) -> _Grouped | None:
    if node.op_type not in (BY_GROUP, BY_ROW):
        return None
    rows = sizes_of(shapes, node.input[0])
    if len(rows) < 3 or not prod(rows):
        return None
    alone = _Grouped(node, node.input[0], rows, attribute(node, "num_groups", rows[1]), node.output[0])
    before, behind = makers.get(node.input[0]), reading.get(node.output[0])
    if node.op_type == BY_GROUP or before is None or before.op_type != "Reshape":
        return alone
    image = sizes_of(shapes, before.input[0])
    back = behind is not None and behind.op_type == "Reshape" and sizes_of(shapes, behind.output[0]) == image
    fits = back and len(image) > 2 and rows[0] == image[0] and image[1] % rows[1] == 0
    if behind is None or not fits or readers[node.output[0]] != 1:
        return alone if len(rows) > 3 else None  # rows of something else
    return _Grouped(node, before.input[0], image, rows[1], behind.output[0])


def _scaled(found: _Grouped, weights: Weights) -> bool:
    """Whether there is a constant scale, and shift, for each channel or for each group."""
    if found.groups < 1 or found.shape[1] % found.groups or any(name not in weights for name in found.node.input[1:3]):
        return False
    return all(prod(weights.shape(name)) in (found.groups, found.shape[1]) for name in found.node.input[1:3])


def _written(found: _Grouped, weights: Weights, dtype: int, version: int) -> list[NodeProto]:
    """Mean and variance of each channel, of these those of a group, and all as a product and a sum."""
    batch, channels, *area = found.shape
    ones, kind, parts = [1] * len(area), helper.tensor_dtype_to_np_dtype(dtype), Parts(found.result, weights)
    apart = parts.numbers("apart", [batch, found.groups, channels // found.groups])
    together = parts.numbers("together", [batch, channels, *ones])

    def mean(of: str, part: str, axes: list[int]) -> str:
        inputs, given = along(axes, parts, f"{part}__axes", version)
        return parts.add("ReduceMean", part, of, *inputs, **given)

    def of_groups(of: str, part: str) -> str:
        """[batch, groups, 1] of [batch, channels, 1, ...]."""
        each = parts.add("Reshape", f"{part}_apart", of, apart)
        return each if found.groups == channels else mean(each, f"{part}_of_groups", [2])

    along_area = [*range(2, 2 + len(area))]
    means = mean(found.source, "mean", along_area)
    if found.groups < channels:
        spread = parts.add("Expand", "mean_spread", of_groups(means, "mean"), apart)
        means = parts.add("Reshape", "mean_together", spread, together)
    rest = parts.add("Sub", "rest", found.source, means)
    variance = of_groups(mean(parts.add("Mul", "squares", rest, rest), "variance", along_area), "variance")
    epsilon = parts.constant("epsilon", np.asarray(attribute(found.node, "epsilon", 1e-5), kind))
    deviation = parts.add("Sqrt", "deviation", parts.add("Add", "least", variance, epsilon))
    scale, shift = (_by_channel(weights.get(name), found.groups, channels) for name in found.node.input[1:3])
    quotient = parts.add("Div", "quotient", parts.constant("scale", scale.astype(kind)), deviation)
    factor = parts.add("Reshape", "factor", quotient, together)
    shifts = parts.constant("shift", shift.reshape(1, channels, *ones).astype(kind))
    offset = parts.add("Sub", "offset", shifts, parts.add("Mul", "back", means, factor))
    parts.add("Add", "sum", parts.add("Mul", "scaled", found.source, factor), offset)
    return parts.all()


def _by_channel(values: Array, groups: int, channels: int) -> Array:
    """[1, groups, channels of a group] of numbers of channels or of groups."""
    return np.broadcast_to(values.reshape(1, groups, -1), (1, groups, channels // groups))
