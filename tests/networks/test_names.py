"""What passes add is named after what is there, and is never called as something else that is there."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, inliner

from tests.networks.forms import IMAGE, drawn, integers
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks.clean import clean
from workers.networks.names import names_apart, names_back

Nodes = list[onnx.NodeProto]


def of_halves(model: ModelProto) -> ModelProto:
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def inlined() -> ModelProto:
    """What a local function calls p is p__1 when it is written out, as is the second part of the pooling p."""
    inside = [
        helper.make_node("Flatten", ["x"], ["p"]),
        helper.make_node("Relu", ["p"], ["q"]),
        helper.make_node("Reshape", ["q", "s"], ["y"]),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"]),
        helper.make_node("Block", ["a", "s"], ["b"], domain="my"),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    model = model_of(
        nodes, {"x": IMAGE}, {"y": None}, [constant("k", drawn(4, 4, 1, 1)), constant("s", integers(*IMAGE))]
    )
    model.functions.append(
        helper.make_function("my", "Block", ["x", "s"], ["y"], inside, [helper.make_opsetid("", 17)])
    )
    model.opset_import.append(helper.make_opsetid("my", 1))
    return inliner.inline_local_functions(model)  # as a network is that was loaded


def widened(*, given: bool, asked: bool) -> ModelProto:
    nodes = [helper.make_node("Add", ["x", "x__single"], ["y"])]
    if not given:
        nodes.insert(0, helper.make_node("Neg", ["x"], ["x__single"]))
    inputs = {"x": [3], **({"x__single": [3]} if given else {})}
    return of_halves(model_of(nodes, inputs, {"y": [3], **({"x__single": [3]} if asked else {})}, []))


def added(*asked: str) -> ModelProto:
    nodes = [
        helper.make_node("Sum", ["x", "x", "x"], ["y"]),
        helper.make_node("Neg", ["x"], ["y__sum1"]),
        helper.make_node("Add", ["y", "y__sum1"], ["z"]),
    ]
    return model_of(nodes, {"x": [3]}, {"z": [3], **{name: [3] for name in asked}}, [])


def folded(name: str) -> ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["a"]),
        helper.make_node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"]),
        helper.make_node("Add", ["b", name], ["y"]),
    ]
    weights = [constant("k", drawn(4, 4, 1, 1)), constant("s", np.abs(drawn(4)))]
    return model_of(nodes, {"x": IMAGE, name: [1]}, {"y": None}, weights)


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize(
    "model",
    [
        inlined(),
        widened(given=False, asked=False),
        widened(given=False, asked=True),
        widened(given=True, asked=False),
        added(),
        added("y", "y__sum1"),
        folded("k_folded"),
        folded("k__folded"),
        folded("b_bias"),
    ],
    ids=["function", "single", "single asked", "single given", "sum", "sum asked", "old kernel", "kernel", "bias"],
)
def test_what_is_called_like_something_that_a_pass_makes_stays_what_it_is(model: ModelProto, simplifier: Any) -> None:
    result, _ = clean(deepcopy(model), {}, simplifier)
    onnx.checker.check_model(result, full_check=True)
    assert [value.name for value in result.graph.input] == [value.name for value in model.graph.input]
    assert [value.name for value in result.graph.output] == [value.name for value in model.graph.output]
    assert same(outputs(model), outputs(result))


def test_names_that_no_pass_can_make_stay() -> None:
    """As of tf2onnx, whose every name has a number behind such a mark."""
    nodes = [helper.make_node("Relu", ["x"], ["Relu__7:0"]), helper.make_node("Neg", ["Relu__7:0"], ["Neg__8:0"])]
    model = model_of(nodes, {"x": [3]}, {"Neg__8:0": [3]}, [])
    before = deepcopy(model)
    ports = names_apart(model)
    names_back(model, ports)
    assert not ports
    assert model == before
