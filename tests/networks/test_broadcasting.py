"""Constants of fewer axes than an image compute the same with as many."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.zoo import constant, model_of
from workers.networks.broadcasting import constants_to_full_rank


def scaled(kind: str, *shape: int, first: bool = False, conv: bool = True) -> ModelProto:
    """A convolution to six channels of 4 x 5, and a constant of `shape` that is combined with them."""
    operands = ["k", "c"] if first else ["c", "k"]
    nodes = [
        helper.make_node("Conv" if conv else "Identity", ["x", "w"] if conv else ["x"], ["c"]),
        helper.make_node(kind, operands, ["y"]),
    ]
    weights = [constant("k", np.abs(drawn(*shape)) + 0.5 if shape else np.float32(0.5))]
    weights += [constant("w", drawn(6, 6, 1, 1))] if conv else []
    return model_of(nodes, {"x": [1, 6, 4, 5]}, {"y": None}, weights)


def result(model: ModelProto) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.abs(np.random.default_rng(0).standard_normal((1, 6, 4, 5))).astype("f")})[0]


def sizes(model: ModelProto) -> list[list[int]]:
    """Of the constants that the last operator reads."""
    kept = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    return [kept[name] for name in model.graph.node[-1].input if name in kept]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("shape", [(1,), (6, 1, 1), (5,), (4, 5), (6, 4, 5)])
@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div"])
def test_they_compute_what_they_computed(kind: str, shape: tuple[int, ...], first: bool) -> None:
    model = scaled(kind, *shape, first=first)
    before = result(model)
    assert constants_to_full_rank(model)
    assert sizes(model) == [[1] * (4 - len(shape)) + list(shape)]
    np.testing.assert_array_equal(result(model), before)


def test_slopes_are_such_constants() -> None:
    model = scaled("PRelu", 6, 1, 1)
    before = result(model)
    assert constants_to_full_rank(model)
    np.testing.assert_array_equal(result(model), before)


@pytest.mark.parametrize(
    "model",
    [scaled("Mul"), scaled("Mul", 1, 6, 1, 1), scaled("Mul", 6, 1, 1, conv=False)],
    ids=["a number", "as many axes", "no convolution"],
)
def test_others_stay_as_they_are(model: ModelProto) -> None:
    before = model.SerializeToString()
    assert constants_to_full_rank(model) is None
    assert model.SerializeToString() == before
