"""Attention (Vaswani et al. 2017) as ONNX Runtime's optimiser puts it together, by ONNX's operators.

Nothing is written where keys and values of earlier words are read or handed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from workers.networks.graph import Parts, Weights, attribute
from workers.networks.shape import TensorShape

_TRIANGLE = 15
"""The operator set from which on a Shape tells the last sizes alone; a triangle is there before."""
_AXES_BY_INPUT = 13
"""The one from which on an Unsqueeze reads its axes."""
_HIDDEN = -10000.0
"""What is added to the scores of keys that a mask hides, where an operator does not say it."""

OTHERWISE = (
    "it reads or makes keys and values of earlier words, has lengths in place of a mask, or turns or packs what it reads",
    "export the network without a cache, with masks, and before ONNX Runtime's own optimisation",
)
"""Why others are not taken, and what to do."""


class Masks:
    """The masks of one graph, each of which is written once for all attentions."""

    def __init__(self, shapes: Mapping[str, TensorShape]) -> None:
        self._shapes = shapes
        self._written: dict[tuple[str, float], str] = {}

    def rank(self, name: str) -> int:
        """How many axes a tensor has; 0 where that is not known."""
        return len(self._shapes[name].dims or ()) if name in self._shapes else 0

    def known(self, mask: str) -> bool:
        """Whether it has a number for each key, or none is given: others tell where a sequence begins or ends."""
        return not mask or self.rank(mask) in (2, 3)

    def kind(self, name: str) -> int:
        """The type of its numbers; float32 where that is not known."""
        return (self._shapes[name].dtype if name in self._shapes else 0) or TensorProto.FLOAT

    def hiding(self, parts: Parts, mask: str, hidden: float, kind: int, version: int) -> str:
        """What is added to scores where the mask, [batch, keys] or [batch, queries, keys], has 0."""
        if (mask, hidden) not in self._written:
            axes = [1, 2] if self.rank(mask) == 2 else [1]
            if version < _AXES_BY_INPUT:
                spread = parts.add("Unsqueeze", "spread", mask, axes=axes)
            else:
                spread = parts.add("Unsqueeze", "spread", mask, parts.numbers("spread_axes", axes))
            shown = parts.add("Cast", "shown", spread, to=TensorProto.BOOL)
            ends = [_number(parts, name, one, kind) for name, one in (("nothing", 0.0), ("hidden", hidden))]
            self._written[mask, hidden] = parts.add("Where", "hiding", shown, *ends)
        return self._written[mask, hidden]


def packed_attention(
    node: NodeProto, parts: Parts, weights: Weights, version: int, masks: Masks
) -> Sequence[NodeProto]:
    """Attention, which multiplies its input [batch, queries, width] by the weights of queries, keys and values side by side."""
    source, weight, bias, mask, past, added = [*node.input, *[""] * 6][:6]
    own = attribute(node, "do_rotary", 0) or attribute(node, "qkv_hidden_sizes") or past or any(node.output[1:])
    if own or weight not in weights or not bias or not masks.known(mask):
        return []
    product = parts.add("Add", "biased", parts.add("MatMul", "product", source, weight), bias)
    sizes = parts.numbers("three", [0, 0, 3, attribute(node, "num_heads"), -1])
    turned = parts.add("Transpose", "turned", parts.add("Reshape", "parted", product, sizes), perm=[2, 0, 3, 1, 4])
    places = [parts.constant(f"place_{place}", np.asarray(place)) for place in range(3)]
    heads = [parts.add("Gather", f"head_{place}", turned, name, axis=0) for place, name in enumerate(places)]
    return _attended(node, parts, heads, mask, added, version, masks)


def attention_of_three(
    node: NodeProto, parts: Parts, weights: Weights, version: int, masks: Masks
) -> Sequence[NodeProto]:
    """MultiHeadAttention of queries, keys and values [batch, length, width]."""
    query, key, value, bias, mask, added = [*node.input, *[""] * 6][:6]
    three = key and value and not any(node.input[6:]) and not any(node.output[1:])
    if not three or not masks.known(mask) or any(masks.rank(one) not in (0, 3) for one in (query, key, value)):
        return []
    given = [query, key, value]
    if bias:
        if bias not in weights or weights.shape(bias)[0] % 3:
            return []
        thirds = np.split(weights.get(bias), 3)
        given = [
            parts.add("Add", f"biased_{place}", one, parts.constant(f"bias_{place}", third))
            for place, (one, third) in enumerate(zip(given, thirds, strict=True))
        ]
    sizes = parts.numbers("by_head", [0, 0, attribute(node, "num_heads"), -1])
    heads = [
        parts.add("Transpose", f"head_{place}", parts.add("Reshape", f"parted_{place}", one, sizes), perm=[0, 2, 1, 3])
        for place, one in enumerate(given)
    ]
    return _attended(node, parts, heads, mask, added, version, masks)


def _attended(
    node: NodeProto, parts: Parts, heads: Sequence[str], mask: str, added: str, version: int, masks: Masks
) -> Sequence[NodeProto]:
    """The values that queries and keys choose, [batch, heads, length, width] each, heads side by side."""
    query, key, value = heads
    kind = masks.kind(node.input[1])
    causal = attribute(node, "unidirectional", 0)
    if causal and version < _TRIANGLE:
        return []
    scores = parts.add("MatMul", "scores", query, parts.add("Transpose", "keys", key, perm=[0, 1, 3, 2]))
    factor = attribute(node, "scale", 0.0)
    if factor:
        scores = parts.add("Mul", "scaled", scores, _number(parts, "scale", factor, kind))
    else:
        scores = parts.add("Div", "scaled", scores, _root_of_width(parts, query, kind))
    if added:
        scores = parts.add("Add", "biased_scores", scores, added)
    if mask:
        hidden = attribute(node, "mask_filter_value", _HIDDEN)
        scores = parts.add("Add", "masked", scores, masks.hiding(parts, mask, hidden, kind, version))
    if causal:
        scores = parts.add("Add", "causal", scores, _later(parts, scores, kind))
    shares = parts.add("Softmax", "shares", scores, axis=3)
    chosen = parts.add("Transpose", "chosen", parts.add("MatMul", "weighed", shares, value), perm=[0, 2, 1, 3])
    parts.add("Reshape", "joined", chosen, parts.numbers("joined_sizes", [0, 0, -1]))
    return parts.all()


def _root_of_width(parts: Parts, query: str, kind: int) -> str:
    """Of one head's vectors, which is a constant once sizes are."""
    sizes, last = parts.add("Shape", "sizes", query), parts.constant("last", np.asarray(3))
    width = parts.add("Cast", "width", parts.add("Gather", "columns", sizes, last, axis=0), to=kind)
    return parts.add("Sqrt", "root", width)


def _later(parts: Parts, scores: str, kind: int) -> str:
    """What is added to scores of keys behind their query, [queries, keys]; a constant once sizes are."""
    one = TensorProto(data_type=TensorProto.INT32, dims=[1], int32_data=[1])
    square = parts.add("ConstantOfShape", "square", parts.add("Shape", "area", scores, start=2), value=one)
    past = parts.add("Cast", "past", parts.add("Trilu", "triangle", square, upper=0), to=TensorProto.BOOL)
    ends = [_number(parts, name, end, kind) for name, end in (("now", 0.0), ("never", -np.inf))]
    return parts.add("Where", "later", past, *ends)


def _number(parts: Parts, name: str, number: float, kind: int) -> str:
    """Of halves the lowest number of float32 is infinity."""
    with np.errstate(over="ignore"):
        return parts.constant(name, np.asarray(number, helper.tensor_dtype_to_np_dtype(kind)))


ATTENTIONS = {"Attention": packed_attention, "MultiHeadAttention": attention_of_three}
"""What is written in place of each; nothing where it has another form."""
