"""Padded channels change nothing but the width of the convolution."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from workers.networks import padding
from workers.networks.padding import pad_channels


def classifier(channels, between=("Relu",), groups=1, watched=False):
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((channels, 8 // groups, 1, 1)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["y0"], group=groups)]
    for number, kind in enumerate(between):
        nodes.append(helper.make_node(kind, [f"y{number}"], [f"y{number + 1}"]))
    nodes.append(helper.make_node("GlobalAveragePool", [f"y{len(between)}"], ["out"]))
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, channels, 1, 1])]
    if watched:
        outputs.append(helper.make_tensor_value_info("y0", TensorProto.FLOAT, [1, channels, 6, 6]))
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 6, 6])],
        outputs,
        [
            numpy_helper.from_array(filters, "w"),
            numpy_helper.from_array(rng.standard_normal(channels).astype(np.float32), "b"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def outputs(model):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)
    return session.run(None, {"x": x})


@pytest.mark.parametrize("between", [(), ("Relu",), ("Relu", "LeakyRelu")])
def test_the_output_is_the_same_and_the_convolution_is_wider(between):
    model = classifier(100, between)
    before = outputs(model)
    assert pad_channels(model)
    assert {tensor.name: tensor.dims[0] for tensor in model.graph.initializer}["w__padded"] == 112
    after = outputs(model)
    assert after[0].shape == before[0].shape
    np.testing.assert_allclose(after[0], before[0], rtol=1e-6, atol=1e-6)


def quantised_classifier(scale, most=()):
    """Scaled, rounded and clipped from above, as quantised networks are written; of shapes `scale` and `most`."""
    model = classifier(100, ())
    steps = [
        ("Mul", "y0 scale"),
        ("Round", "q0"),
        ("Sub", "most q1"),
        ("Relu", "q2"),
        ("Add", "most q3"),
        ("Div", "q4 scale"),
    ]
    graph = model.graph
    pool = graph.node.pop()
    graph.node.extend(helper.make_node(kind, read.split(), [f"q{place}"]) for place, (kind, read) in enumerate(steps))
    pool.input[0] = f"q{len(steps) - 1}"
    graph.node.append(pool)
    rng = np.random.default_rng(2)
    constants = {"scale": rng.uniform(2, 20, scale), "most": rng.uniform(10, 15, most)}
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()
    )
    return model


BY_CHANNEL = (1, 100, 1, 1)


@pytest.mark.parametrize(
    ("scale", "most"), [((), ()), ((1,), ()), ((1, 1, 1, 1), ()), (BY_CHANNEL, ()), (BY_CHANNEL, BY_CHANNEL)]
)
def test_it_passes_through_the_arithmetic_of_quantised_networks(scale, most):
    model = quantised_classifier(scale, most)
    before = outputs(model)
    assert pad_channels(model)
    assert len(np.unique(before[0])) > 50
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        quantised_classifier((1, 1, 6, 6)),  # a picture's own numbers
        quantised_classifier((6,)),
        quantised_classifier((1, 1, 1, 1, 1)),
        classifier(128),  # whole vectors already
        classifier(40),  # too few to matter
        classifier(100, groups=4),  # padding would shift the groups
        classifier(100, ("Softmax",)),  # mixes channels
        classifier(100, watched=True),  # somebody else reads the unpadded result
    ],
    ids=["picture", "row", "more axes", "whole", "few", "groups", "mixing", "watched"],
)
def test_it_is_left_alone_where_padding_would_show(model):
    before = model.SerializeToString()
    assert pad_channels(model) is None
    assert model.SerializeToString() == before


@pytest.mark.mutation
def test_channels_picked_one_further_on_are_noticed(monkeypatch):
    right = padding._pick

    def shifted(pool, channels, weights):
        pick = right(pool, channels, weights)
        pick.input[1] = weights.put("shifted", weights.get(pick.input[1]) + 1)
        return pick

    monkeypatch.setattr(padding, "_pick", shifted)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        test_the_output_is_the_same_and_the_convolution_is_wider(("Relu",))
