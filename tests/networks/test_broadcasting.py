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


def scaled(
    kind: str, *shape: int, first: bool = False, conv: bool = True, area: tuple[int, ...] = (4, 5)
) -> ModelProto:
    """A convolution to six channels of 4 x 5, or another area, and a constant of `shape` that is combined with them."""
    operands = ["k", "c"] if first else ["c", "k"]
    nodes = [
        helper.make_node("Conv" if conv else "Identity", ["x", "w"] if conv else ["x"], ["c"]),
        helper.make_node(kind, operands, ["y"]),
    ]
    weights = [constant("k", np.abs(drawn(*shape)) + 0.5 if shape else np.float32(0.5))]
    weights += [constant("w", drawn(6, 6, *[1] * len(area)))] if conv else []
    return model_of(nodes, {"x": [1, 6, *area]}, {"y": None}, weights)


def result(model: ModelProto) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (read,) = session.get_inputs()
    return session.run(None, {"x": np.abs(np.random.default_rng(0).standard_normal(read.shape)).astype("f")})[0]


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


@pytest.mark.parametrize(
    ("area", "shape"), [((7,), (6, 1)), ((7,), (1,)), ((3, 4, 5), (6, 1, 1, 1)), ((3, 4, 5), (3, 1, 1))]
)
def test_channels_of_signals_and_volumes_are_such_too(area: tuple[int, ...], shape: tuple[int, ...]) -> None:
    model = scaled("Mul", *shape, area=area)
    before = result(model)
    assert constants_to_full_rank(model)
    assert sizes(model) == [[1] * (len(area) + 2 - len(shape)) + list(shape)]
    np.testing.assert_array_equal(result(model), before)


def test_a_constant_that_meets_a_signal_and_an_image_is_given_the_axes_of_each() -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Mul", ["c", "k"], ["m"]),
        helper.make_node("Squeeze", ["m", "first"], ["s"]),
        helper.make_node("Mul", ["s", "k"], ["n"]),
        helper.make_node("Sub", ["n", "k"], ["y"]),
    ]
    weights = [constant("w", drawn(6, 6, 1, 1)), constant("k", drawn(4, 1)), constant("first", np.asarray([0]))]
    model = model_of(nodes, {"x": [1, 6, 4, 5]}, {"y": None}, weights)
    before = result(model)
    assert constants_to_full_rank(model) == "2 constants were given as many axes as what they are combined with"
    assert sizes(model) == [[1, 4, 1]]
    np.testing.assert_array_equal(result(model), before)


def test_slopes_are_such_constants() -> None:
    model = scaled("PRelu", 6, 1, 1)
    before = result(model)
    assert constants_to_full_rank(model)
    np.testing.assert_array_equal(result(model), before)


@pytest.mark.parametrize(
    "model",
    [
        scaled("Mul"),
        scaled("Mul", 1, 6, 1, 1),
        scaled("Mul", 6, 1, 1, conv=False),
        scaled("Add", 8, area=(8,)),
        scaled("Add", 8, area=(2, 3, 8)),
        scaled("Add", 6, 1, 1, 1, 1, area=(2, 3, 4, 5)),
    ],
    ids=["a number", "as many axes", "no convolution", "a bias of tokens", "of windows of them", "six axes"],
)
def test_others_stay_as_they_are(model: ModelProto) -> None:
    before = model.SerializeToString()
    assert constants_to_full_rank(model) is None
    assert model.SerializeToString() == before
