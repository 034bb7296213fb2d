"""Sums by Einstein's convention as matrix products, which TVM has tiles for, and as transpositions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Parts, Weights, attribute, operator_types, rewrite, told
from workers.networks.limits import DEFAULT
from workers.networks.shape import sizes_of
from workers.networks.shapes import tensor_shapes

_BEFORE = "".join(chr(0x100 + place) for place in range(DEFAULT.rank))
"""Letters of axes that an equation does not name; the last is of the last."""


def einsums_to_transpositions(model: ModelProto) -> str | None:
    """Those of one tensor of known sizes that put its axes into another order."""
    if "Einsum" not in operator_types(model):
        return None
    shapes = tensor_shapes(model)

    def transposed(node: NodeProto) -> list[NodeProto]:
        letters = _letters(node, [sizes_of(shapes, name) for name in node.input]) if node.op_type == "Einsum" else []
        if len(letters) != 2 or {*letters[0]} != {*letters[1]}:
            return []
        source, result = letters
        return [helper.make_node("Transpose", node.input, node.output, perm=[source.index(one) for one in result])]

    rewritten = rewrite(model.graph, transposed)
    return told(rewritten, "Einsum was written as a transposition", "Einsums were written as transpositions")


def einsums_to_products(model: ModelProto) -> str | None:
    """Those of two tensors of known sizes where each letter is of both or of the result."""
    if "Einsum" not in operator_types(model):
        return None
    shapes, weights = tensor_shapes(model), Weights(model.graph)

    def multiplied(node: NodeProto) -> list[NodeProto]:
        if node.op_type != "Einsum" or len(node.input) != 2:
            return []
        sizes = [sizes_of(shapes, name) for name in node.input]
        letters = _letters(node, sizes)
        if not letters:
            return []
        return _product(node, letters, sizes, weights)

    rewritten = rewrite(model.graph, multiplied)
    return told(rewritten, "Einsum was written as a matrix product", "Einsums were written as matrix products")


def _letters(node: NodeProto, sizes: Sequence[tuple[int, ...]]) -> list[str]:
    """Of each input and of the result, one an axis; none where these are not as many, or one stands twice."""
    terms, _, result = attribute(node, "equation").decode().replace(" ", "").partition("->")
    named = [*terms.split(","), result]
    free = [len(of) - len(term.replace("...", "")) for term, of in zip(named, sizes, strict=False)]
    spelt = [
        term.replace("...", _BEFORE[max(0, DEFAULT.rank - axes) :])
        for term, axes in zip(named, [*free, max(free)], strict=False)
    ]
    known = len(named) == len(sizes) + 1 and all(len(of) == len(term) for of, term in zip(sizes, spelt, strict=False))
    return spelt if known and all(one.isalpha() and len({*one}) == len(one) for one in spelt) else []


def _product(
    node: NodeProto, letters: Sequence[str], sizes: Sequence[tuple[int, ...]], weights: Weights
) -> list[NodeProto]:
    """[*members, rows, summed] times [*members, summed, columns]; none where some letter is of one tensor alone."""
    left, right, result = letters
    members = [one for one in left if one in right and one in result]
    summed = [one for one in left if one in right and one not in result]
    rows, columns = [one for one in left if one not in right], [one for one in right if one not in left]
    extent = dict(zip(left, sizes[0], strict=True))
    agree = all(extent.setdefault(one, size) == size for one, size in zip(right, sizes[1], strict=True))
    if not summed or not agree or not all(extent.values()) or {*rows, *columns, *members} != {*result}:
        return []
    parts = Parts(node.output[0], weights)

    def matrices(part: str, name: str, term: str, *axes: list[str]) -> str:
        """A tensor with the members' axes before these, each of which may be of several letters."""
        turned = [term.index(one) for several in (members, *axes) for one in several]
        if turned != sorted(turned):
            name = parts.add("Transpose", f"{part}_turned", name, perm=turned)
        if all(len(several) == 1 for several in axes):
            return name
        sizes = [*(extent[one] for one in members), *(prod(extent[one] for one in several) for several in axes)]
        return parts.add("Reshape", part, name, parts.numbers(f"{part}_sizes", sizes))

    one = matrices("left", node.input[0], left, rows, summed)
    other = matrices("right", node.input[1], right, summed, columns)
    whole = parts.add("MatMul", "products", one, other)
    made = [*members, *rows, *columns]
    if len(rows) != 1 or len(columns) != 1:
        whole = parts.add("Reshape", "whole", whole, parts.numbers("whole_sizes", [extent[letter] for letter in made]))
    if made != [*result]:
        parts.add("Transpose", "result", whole, perm=[made.index(letter) for letter in result])
    return parts.all()
