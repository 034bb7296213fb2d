"""Convolutions split and poolings moved compute the same without the concatenation."""

import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from workers.networks import concatenation
from workers.networks.concatenation import pool_before_concatenation, split_convolutions


def fire(outputs=8, between=None, groups=1, watched=False, strides=(1, 1), widths=(16, 24)):
    """Convolutions side by side, concatenated, and one that reads them all."""
    rng = np.random.default_rng(0)
    weights, nodes, names = [], [], []
    for place, width in enumerate(widths):
        weights.append(numpy_helper.from_array(rng.standard_normal((width, 4, 1, 1)).astype("f"), f"w{place}"))
        nodes.append(helper.make_node("Conv", ["x", f"w{place}"], [f"c{place}"]))
        nodes.append(helper.make_node("Relu", [f"c{place}"], [f"r{place}"]))
        names.append(f"r{place}")
    nodes.append(helper.make_node("Concat", names, ["joined"], axis=1))
    last = "joined"
    if between:
        nodes.append(helper.make_node(between, ["joined"], ["between"], kernel_shape=[2, 2], strides=[2, 2]))
        last = "between"
    weights.append(
        numpy_helper.from_array(rng.standard_normal((outputs, sum(widths) // groups, 3, 3)).astype("f"), "w")
    )
    weights.append(numpy_helper.from_array(rng.standard_normal(outputs).astype("f"), "b"))
    nodes.append(
        helper.make_node("Conv", [last, "w", "b"], ["y"], group=groups, pads=[1, 1, 1, 1], strides=list(strides))
    )
    found = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, outputs, None, None])]
    if watched:
        found.append(helper.make_tensor_value_info("joined", TensorProto.FLOAT, [1, sum(widths), 6, 6]))
    graph = helper.make_graph(
        nodes, "fire", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 6])], found, weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def results(model):
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.random.default_rng(1).standard_normal((1, 4, 6, 6)).astype("f")})[0]


def kinds(model):
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize("model", [fire(), fire(strides=(2, 2), outputs=32), fire(8, widths=(8, 16, 24))])
def test_the_sum_of_the_parts_is_what_the_convolution_gave(model):
    before = results(model)
    assert split_convolutions(model)
    assert "Concat" not in kinds(model)
    np.testing.assert_allclose(results(model), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
def test_pooling_moves_in_front_and_the_split_follows(pool):
    model = fire(between=pool)
    before = results(model)
    assert pool_before_concatenation(model)
    assert kinds(model).count(pool) == 2
    assert split_convolutions(model)
    np.testing.assert_allclose(results(model), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "model",
    [fire(groups=4), fire(watched=True), fire(outputs=64), fire(widths=(8,) * 6)],
    ids=["groups", "somebody else reads it", "sums larger than the copy", "too many parts"],
)
def test_it_is_left_alone_where_it_would_not_hold_or_pay(model):
    before = model.SerializeToString()
    assert split_convolutions(model) is None
    assert model.SerializeToString() == before


def test_a_concatenation_somebody_else_reads_keeps_its_pooling():
    model = fire(between="MaxPool", watched=True)
    assert pool_before_concatenation(model) is None


def test_many_concatenations_are_looked_at_once_each():
    """Each looked for its readers among all operators, which took twenty seconds."""
    nodes = [helper.make_node("Concat", ["x", "x"], [f"c{place}"], axis=1) for place in range(3_000)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "c0")]
    model = helper.make_model(helper.make_graph(nodes, "many", values[:1], values[1:]))
    start = time.process_time()
    assert split_convolutions(model) is None
    assert time.process_time() - start < 5


@pytest.mark.mutation
def test_filters_given_to_the_wrong_part_are_noticed(monkeypatch):
    model = fire(widths=(16, 16))
    before = results(model)
    split = np.split
    monkeypatch.setattr(concatenation.np, "split", lambda *given, **named: split(*given, **named)[::-1])
    split_convolutions(model)
    assert not np.allclose(results(model), before, rtol=1e-3, atol=1e-3)
