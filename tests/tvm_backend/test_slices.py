"""What is taken at one place of an axis: how many operators that is, and what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.test_configurations import compiled_right
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

TOKENS, HEADS, WIDTH = 10, 2, 16
WHOLE = HEADS * WIDTH


def attention(places: tuple[Any, ...] = (0, 1, 2), axis: int = 0) -> ModelProto:
    """Queries, keys and values of one product, as PyTorch's MultiheadAttention is exported, or other `places` of an `axis`."""
    perm = [2, 0, 1, 3]  # of tokens, one, which of the three, channels
    first = perm.index(2)
    perm[first], perm[axis] = perm[axis], perm[first]
    heads = [f"h{i}" for i in range(3)]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Reshape", ["m", "three"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=perm),
        *(helper.make_node("Gather", ["t", f"place{i}"], [f"g{i}"], axis=axis) for i in range(3)),
        *(helper.make_node("Reshape", [f"g{i}", "heads"], [f"s{i}"]) for i in range(3)),
        *(helper.make_node("Transpose", [f"s{i}"], [heads[i]], perm=[1, 2, 0] if i == 1 else [1, 0, 2]) for i in range(3)),
        helper.make_node("MatMul", heads[:2], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", heads[2]], ["y"]),
    ]  # fmt: skip
    weights = [
        constant("w", drawn(24, 3 * WHOLE, seed=0)),
        constant("three", np.int64([TOKENS, 1, 3, WHOLE])),
        constant("heads", np.int64([TOKENS, HEADS, WIDTH])),
        *(
            constant(f"place{i}", place if isinstance(place, np.int32) else np.int64(place))
            for i, place in enumerate(places)
        ),
    ]
    return model_of(nodes, {"x": [TOKENS, 24]}, {"y": None}, weights)


def copies(model: ModelProto, folder: Path) -> int:
    """How many operators there are beside products and the Softmax; what all compute is right."""
    one = compiled_right(model, folder)
    return sum("matmul" not in operator.name and "softmax" not in operator.name for operator in one.extracted)


@pytest.mark.parametrize(
    ("places", "axis"),
    [((0, 1, 2), 0), ((0, -2, -1), 0), ((0, 1, 2), 2), (([0], [1], [2]), 0), (tuple(map(np.int32, (0, 1, -1))), 0)],
    ids=["places", "counted from behind", "of a later axis", "lists of one", "of 32 bits"],
)
def test_queries_keys_and_values_are_read_where_the_product_has_them(
    places: tuple[Any, ...], axis: int, tmp_path: Path
) -> None:
    assert copies(attention(places, axis), tmp_path) == 3


@pytest.mark.parametrize("kind", ["Slice", "Split"])
def test_so_are_those_that_are_unbound(kind: str, tmp_path: Path) -> None:
    """As a vision transformer's are, by either exporter of PyTorch."""
    model = attention()
    nodes = []
    for node in model.graph.node:
        if node.op_type != "Gather":
            nodes.append(node)
            continue
        place, part = int(node.output[0][1:]), f"u{node.output[0][1:]}"
        bounds = [constant(f"{part}_{word}", np.int64([place + n])) for n, word in enumerate(("from", "to"))]
        model.graph.initializer.extend(bounds)
        if kind == "Slice":
            nodes.append(helper.make_node("Slice", ["t", bounds[0].name, bounds[1].name, "axis"], [part]))
        elif place == 0:
            nodes.append(helper.make_node("Split", ["t", "ones"], ["u0", "u1", "u2"], axis=0))
        nodes.append(helper.make_node("Squeeze", [part, "axis"], [node.output[0]]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend([constant("axis", np.int64([0])), constant("ones", np.int64([1, 1, 1]))])
    assert copies(model, tmp_path) == 3


def test_steps_of_a_sequence_stay_one_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tvm_backend.slices.MOST", 2)
    assert copies(attention(), tmp_path) > 3


@pytest.mark.mutation
def test_what_is_taken_of_copies_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tvm_backend.slices.ADDRESSED", ())
    with pytest.raises(AssertionError):
        test_queries_keys_and_values_are_read_where_the_product_has_them((0, 1, 2), 0, tmp_path)
