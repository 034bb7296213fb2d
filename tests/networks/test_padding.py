"""Padded channels change nothing but the width of the convolution."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

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


def quantised_classifier(shape):
    """Scaled, rounded and clipped from above, as quantised networks are written; `shape` is that of the scale."""
    model = classifier(100, ())
    steps = [("Mul", "scale"), ("Round", None), ("Sub", "most"), ("Relu", None), ("Add", "most"), ("Div", "steps")]
    scale = np.random.default_rng(2).uniform(2, 20, shape).astype(np.float32)
    constants = {"scale": scale, "most": np.float32(15), "steps": scale}
    graph, name = model.graph, "y0"
    pool = graph.node.pop()
    for number, (kind, constant) in enumerate(steps):
        read = [constant, name] if kind == "Add" else [name, *([constant] if constant else [])]
        graph.node.append(helper.make_node(kind, read, [f"q{number}"]))
        name = f"q{number}"
    pool.input[0] = name
    graph.node.append(pool)
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items())
    return model


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1), (1, 100, 1, 1)])
def test_it_passes_through_the_arithmetic_of_quantised_networks(shape):
    model = quantised_classifier(shape)
    before = outputs(model)
    assert pad_channels(model)
    assert len(np.unique(before[0])) > 50
    np.testing.assert_allclose(outputs(model)[0], before[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        quantised_classifier((1, 1, 6, 6)),  # a picture's own numbers
        quantised_classifier((6,)),
        classifier(128),  # whole vectors already
        classifier(40),  # too few to matter
        classifier(100, groups=4),  # padding would shift the groups
        classifier(100, ("Softmax",)),  # mixes channels
        classifier(100, watched=True),  # somebody else reads the unpadded result
    ],
    ids=["picture", "row", "whole", "few", "groups", "mixing", "watched"],
)
def test_it_is_left_alone_where_padding_would_show(model):
    before = model.SerializeToString()
    assert pad_channels(model) is None
    assert model.SerializeToString() == before


@pytest.mark.mutation
def test_padding_that_is_not_taken_off_is_noticed(monkeypatch):
    monkeypatch.setattr("workers.networks.padding._following", lambda node, behind: [])
    model = classifier(100)
    pad_channels(model)
    model.graph.output[0].name = "out__padded"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 112
    assert outputs(model)[0].shape != outputs(classifier(100))[0].shape
