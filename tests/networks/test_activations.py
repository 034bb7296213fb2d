"""Hard activations compute the same as clips."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.networks.forms import drawn
from tests.networks.test_clean import failing
from tests.zoo import constant, model_of
from workers.networks.activations import hard_activations_to_clips, leaky_relus_by_channel, prelus_to_leaky_relus
from workers.networks.clean import clean
from workers.networks.rewriting import clips_to_relus

SWISH = helper.make_node("HardSwish", ["c"], ["y"])
SIGMOID = helper.make_node("HardSigmoid", ["c"], ["y"])
SLOPED = helper.make_node("HardSigmoid", ["c"], ["y"], alpha=1 / 6, beta=0.25)


def activated(node: NodeProto, conv: bool = True) -> ModelProto:
    """A convolution, and what follows it."""
    before = helper.make_node("Conv", ["x", "w"], ["c"]) if conv else helper.make_node("Identity", ["x"], ["c"])
    weights = [constant("w", 4 * drawn(6, 6, 1, 1))] if conv else []
    return model_of([before, node], {"x": [1, 6, 9, 8]}, {"y": None}, weights)


def result(model: ModelProto) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": 4 * np.random.default_rng(0).standard_normal((1, 6, 9, 8)).astype("f")})[0]


@pytest.mark.parametrize("node", [SWISH, SIGMOID, SLOPED], ids=["HardSwish", "HardSigmoid", "of another slope"])
def test_they_compute_what_they_computed(node: NodeProto) -> None:
    model = activated(node)
    before = result(model)
    assert before.min() <= 0, "values below the bounds"
    assert before.max() >= 1, "and above"
    assert hard_activations_to_clips(model) == "1 hard activation was written with Clip"
    assert clips_to_relus(model)
    assert {"Conv", "Relu", "Add"} <= {one.op_type for one in model.graph.node} <= {"Conv", "Relu", "Add", "Sub", "Mul"}
    np.testing.assert_allclose(result(model), before, rtol=1e-6, atol=1e-6)


def test_without_convolutions_they_stay() -> None:
    assert hard_activations_to_clips(activated(SWISH, conv=False)) is None


@pytest.mark.mutation
def test_another_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.networks import activations

    model = activated(SWISH)
    before, right = result(model), activations._clip
    monkeypatch.setattr(activations, "_clip", lambda *place: right(*place[:-1], 5.0))
    assert hard_activations_to_clips(model)
    assert not np.allclose(result(model), before, rtol=1e-6, atol=1e-6)


LEAKY = helper.make_node("LeakyRelu", ["c"], ["y"], alpha=0.2)
SLOPES = helper.make_node("PRelu", ["c", "s"], ["y"])


def leaky(node: NodeProto, conv: bool = True, slopes: int = 1) -> ModelProto:
    model = activated(node, conv)
    model.graph.initializer.append(constant("s", np.linspace(0.1, 0.9, slopes, dtype=np.float32).reshape(-1, 1, 1)))
    return model


def test_one_slope_is_one_for_each_channel() -> None:
    model = leaky(LEAKY)
    before = result(model)
    assert leaky_relus_by_channel(model) == "1 leaky Relu was given a slope for each channel"
    last = model.graph.node[-1]
    assert last.op_type == "PRelu"
    (slopes,) = (numpy_helper.to_array(one) for one in model.graph.initializer if one.name == last.input[1])
    assert slopes.shape == (6, 1, 1)
    np.testing.assert_array_equal(result(model), before)


def test_a_prelu_of_one_slope_is_leaky() -> None:
    model = leaky(SLOPES)
    before = result(model)
    assert prelus_to_leaky_relus(model) == "1 PRelu of one slope became a LeakyRelu"
    np.testing.assert_array_equal(result(model), before)


def test_other_leaky_relus_stay() -> None:
    assert leaky_relus_by_channel(leaky(LEAKY, conv=False)) is None
    assert leaky_relus_by_channel(leaky(SLOPES)) is None
    assert prelus_to_leaky_relus(leaky(SLOPES, slopes=6)) is None


@pytest.mark.parametrize("kind", ["LeakyRelu", "PRelu"])
def test_what_a_leaky_relu_stands_between_is_padded(kind: str) -> None:
    """Its slopes are made when channels are as many as they will be."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node(kind, ["c", "s"][: 1 + (kind == "PRelu")], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"]),
    ]
    weights = [constant("w", drawn(20, 8, 3, 3)), constant("v", drawn(8, 20, 1, 1)), constant("s", np.float32([0.1]))]
    model = model_of(nodes, {"x": [1, 8, 9, 8]}, {"y": None}, weights)
    result, report = clean(model, {}, failing)
    assert any("padded to whole vectors" in sentence for sentence in report)
    assert [one.op_type for one in result.graph.node] == ["Conv", "PRelu", "Conv"]
