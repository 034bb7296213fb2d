"""Channels padded to whole vectors, where the padding is few and costs nothing to take off again."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import (
    Weights,
    attribute,
    computed,
    has_convolutions,
    joins_channels,
    makers_of,
    rewrite,
    set_attributes,
    told,
    uses,
)
from workers.networks.structure import opset

WIDE, NARROW = 16, 8
"""float32 of the widest vectors in use, and of those that nearly every processor has. What is left of a vector takes registers
of its own."""
MORE = {WIDE: 1 / 8, NARROW: 1 / 3}
"""How many channels may be added, as a share, to come to whole vectors of the kind: 116 become 128, 20 become 24."""
HARDLY = 1 / 24
"""The same for wide vectors where narrow ones are whole: 1,000 become 1,008, 232 become 240."""
POOLED = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
CHANNELWISE = POOLED | frozenset(
    "AveragePool Celu Clip Elu Erf Gelu HardSigmoid HardSwish LeakyRelu MaxPool Mish Relu Round Selu Sigmoid Softplus "
    "Softsign Tanh".split()
)
"""Operators that keep channels apart and make a number of a zero, so that the padding passes through."""
ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div"})
"""So do these, of tensors with the same padding, and of constants that are one number or one a channel."""


def pad_channels(model: ModelProto) -> str | None:
    """A convolution whose channels are no whole vectors gets filters of zeros, and what sums its channels up no weights for
    them.

    Where nothing but channelwise operators stand between, depthwise convolutions too. The padding is taken off where one
    value a channel is left, and where channels are copied: concatenated, or split. A classifier's last convolution with
    1,000 channels reaches two thirds of the speed of one with 1,008. Of a ShuffleNet V2, which has 58, 116 and 232, products
    come to twice their speed, and depthwise convolutions to five times; of a FocalNet, which splits 771, to five.
    """
    if opset(model) < 10 or not has_convolutions(model):  # a Slice had attributes in place of inputs
        return None
    graph, weights = model.graph, Weights(model.graph)
    picks: dict[str, NodeProto] = {}
    wider = Wider(weights)
    padded = 0
    for group in _groups(model, weights):
        if widenings := group.widenings(weights):
            picks |= group.picks(weights)
            group.pad(weights, widenings, wider)
            padded += len(group.makers)
    if padded:
        rewrite(graph, lambda node: [node, picks[node.output[0]]] if picks.keys() & node.output else [])
    return told(
        padded,
        "convolution was padded to whole vectors of channels",
        "convolutions were padded to whole vectors of channels",
    )


def more(channels: int) -> int:
    """How many are added: none where there are whole vectors, or would be of too many more."""
    narrow, wide = -channels % NARROW, -channels % WIDE
    if wide <= channels * (MORE[WIDE] if narrow else HARDLY):
        return wide
    return narrow if narrow <= channels * MORE[NARROW] else 0


_Widening = tuple[int, int, float]
"""A constant's axis of channels, how many more it gets there and which value they have."""


@dataclass
class _Group:
    """Tensors of the same channels: convolutions are their `makers`, others `pass` them on, and `sum` them up."""

    makers: list[NodeProto] = field(default_factory=list)
    passing: list[NodeProto] = field(default_factory=list)
    summing: list[NodeProto] = field(default_factory=list)
    picked: dict[str, NodeProto] = field(default_factory=dict)
    """Tensors, and what makes them, that are also read by what has to have the channels that there are."""
    fixed: bool = False
    """Whether one of the others has to."""

    def widenings(self, weights: Weights) -> list[tuple[NodeProto, int, _Widening]]:
        """What is to be widened for whole vectors, of each operator and by the place among its inputs; nothing where something
        cannot be."""
        filters = [weights.shape(maker.input[1]) for maker in self.makers]
        if self.fixed or not filters or len({(shape[0], len(shape)) for shape in filters}) > 1:
            return []
        if not (extra := more(filters[0][0])):
            return []
        found = [(node, 1, (1, extra, 0.0)) for node in self.summing]
        for node in (*self.makers, *self.passing):
            axes = _axes(node, weights, filters[0], extra)
            if axes is None:
                return []
            neutral = 1.0 if node.op_type in ("Mul", "Div") else 0.0
            found += [(node, place, (axis, extra, neutral)) for place, axis in axes.items()]
        return found

    def pad(
        self,
        weights: Weights,
        widenings: Sequence[tuple[NodeProto, int, _Widening]],
        wider: Wider,
    ) -> None:
        for node, place, widening in widenings:
            # As it is by now: a convolution that sums up what it is added to has its constant widened twice.
            node.input[place] = wider(node.input[place], *widening)
        for node in self.passing:
            if node.op_type == "Conv":
                channels, width, *_ = weights.shape(node.input[1])
                set_attributes(node, group=channels // width)

    def picks(self, weights: Weights) -> Iterator[tuple[str, NodeProto]]:
        """What will take the padding off, by the name of the padded tensor."""
        channels = weights.shape(self.makers[0].input[1])[0]
        padded = {name: f"{name}__padded" for name in self.picked}
        for node in (*self.passing, *self.summing):
            for place, read in enumerate(node.input):
                node.input[place] = padded.get(read, read)
        for name, maker in self.picked.items():
            maker.output[0] = padded[name]
            bounds = {"from": 0, "to": channels, "axis": 1}
            read = [weights.put(f"{name}__{what}", np.asarray([value], np.int64)) for what, value in bounds.items()]
            yield padded[name], helper.make_node("Slice", [padded[name], *read], [name])


def _groups(model: ModelProto, weights: Weights) -> list[_Group]:
    graph, counts, alike = model.graph, uses(model), _Alike()
    made = makers_of(graph)
    within = Counter(name for node in graph.node for name in node.input)
    readers = defaultdict[str, list[NodeProto]](list)
    pooled = set[str]()
    for node in graph.node:
        read = computed(node, weights)
        for name in read:
            readers[name].append(node)
        if _passes(node, weights):
            for name in read:
                alike.join(name, node.output[0])
            if _pools(node, weights) or pooled.issuperset(read):
                pooled.add(node.output[0])
    groups = defaultdict[str, _Group](_Group)
    for name in dict.fromkeys((*made, *readers)):
        group, maker = groups[alike.of(name)], made.get(name)
        if maker is None or not (_passes(maker, weights) or _sums(maker, weights)):
            group.fixed = True
            continue
        (group.passing if _passes(maker, weights) else group.makers).append(maker)
        group.summing += [node for node in readers[name] if _sums(node, weights)]
        others = [node for node in readers[name] if not (_passes(node, weights) or _sums(node, weights))]
        outside = counts[name] > within[name]
        if others or outside:
            group.picked[name] = maker
            group.fixed |= name not in pooled and (outside or not all(_copies(node, weights) for node in others))
    return list(groups.values())


class _Alike:
    """Names that belong together, of which one stands for the others."""

    def __init__(self) -> None:
        self._next: dict[str, str] = {}

    def of(self, name: str) -> str:
        while name in self._next:
            further = self._next[name]
            self._next[name] = name = self._next.get(further, further)  # half the way for the next who asks
        return name

    def join(self, one: str, other: str) -> None:
        one, other = self.of(one), self.of(other)
        if one != other:
            self._next[one] = other


def _passes(node: NodeProto, weights: Weights) -> bool:
    """Whether its one output has the channels of what it reads: of a convolution each from its own, or from a group's."""
    if len(node.output) > 1:
        return False
    if node.op_type == "Conv":
        filters, groups = node.input[1], attribute(node, "group", 1)
        return (
            _convolves(node, weights) and groups > 1 and weights.shape(filters)[0] == groups * weights.shape(filters)[1]
        )
    read = computed(node, weights)
    if node.op_type == "Div":  # by what is padded with ones, not zeros
        return bool(read) and node.input[1] in weights
    if node.op_type in ARITHMETIC:
        return bool(read)
    return len(read) == 1 and (node.op_type in CHANNELWISE or _pools(node, weights))


def _copies(node: NodeProto, weights: Weights) -> bool:
    """Whether it copies some channels and not others, or beside others: those that were added are left out as it does."""
    if node.op_type == "Slice":
        axes = node.input[3] if len(node.input) > 3 else ""
        return axes in weights and 1 in weights.get(axes)
    return joins_channels(node) or (node.op_type == "Split" and attribute(node, "axis", 0) == 1)


def _pools(node: NodeProto, weights: Weights) -> bool:
    """Whether it leaves one value a channel."""
    if node.op_type != "ReduceMean" or attribute(node, "keepdims", 1) == 0:
        return node.op_type in POOLED
    axes = attribute(node, "axes") or [
        axis for name in node.input[1:] if name in weights for axis in np.ravel(weights.get(name))
    ]
    return sorted(axes) in ([2, 3], [-2, -1])


def _axes(node: NodeProto, weights: Weights, filters: Sequence[int], extra: int) -> dict[int, int] | None:
    """The axis of channels, by their places among the inputs, of the constants that have one, where what makes channels or
    passes them on is to have so many more; None where it cannot."""
    constants = {place: weights.shape(name) for place, name in enumerate(node.input) if name in weights}
    if node.op_type == "Conv":
        fits = attribute(node, "group", 1) == 1 or extra % constants[1][1] == 0
        return dict.fromkeys(constants, 0) if fits else None
    if node.op_type == "ReduceMean":
        return {} if len(filters) == 4 else None
    if node.op_type not in ARITHMETIC:
        return {}
    axes = {place: _axis(shape, filters) for place, shape in constants.items()}
    single = {place for place, shape in constants.items() if math.prod(shape) == 1 and len(shape) <= len(filters)}
    by_channel = {place: axis for place, axis in axes.items() if axis is not None}
    return by_channel if single | by_channel.keys() == constants.keys() else None


def _sums(node: NodeProto, weights: Weights) -> bool:
    """Whether it is a convolution that sums up all channels that it reads."""
    return _convolves(node, weights) and attribute(node, "group", 1) == 1


def _convolves(node: NodeProto, weights: Weights) -> bool:
    """What is computed, with constants."""
    computes = node.op_type == "Conv" and node.input[0] not in weights
    constants = [weights.tensor(name) for name in node.input[1:] if name] if computes else []
    return bool(constants) and all(one is not None and one.data_type == TensorProto.FLOAT for one in constants)


def _axis(shape: Sequence[int], filters: Sequence[int]) -> int | None:
    """Where the channels are in a constant that has one number for each; else None."""
    by_channel = (1, filters[0], *(1,) * (len(filters) - 2))
    missing = len(by_channel) - len(shape)
    return 1 - missing if missing in (0, 1) and tuple(shape) == by_channel[missing:] else None


class Wider:
    """The name of a constant like another with so many more numbers of one value behind an axis. Each is made once:
    operators that share theirs go on doing so."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._made: dict[tuple[str, int, int, float], str] = {}

    def __call__(self, name: str, axis: int, extra: int, value: float) -> str:
        asked = name, axis, extra, value
        if asked not in self._made:
            values = self._weights.get(name)
            room = [(0, extra if place == axis else 0) for place in range(values.ndim)]
            wide = np.pad(values, room, constant_values=value)
            self._made[asked] = self._weights.put(f"{name}__padded", wide)
        return self._made[asked]
