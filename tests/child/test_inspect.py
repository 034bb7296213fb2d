"""What is told of a network, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.networks.forms import drawn, floats
from tests.zoo import constant, model_of
from workers.child.clock import RunClock
from workers.child.inspect import inspect_network
from workers.child.pulse import Pulse
from workers.messages.channel import ControlReader
from workers.networks.clean import cleaned
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types


def speech(shape: list[int | str], *before: NodeProto, **attributes: Any) -> ModelProto:
    """x[batch, time, features], or what `before` makes of it as z, from 80 features to 16, and an LSTM over the time."""
    nodes = [
        *before,
        helper.make_node("MatMul", ["z" if before else "x", "w"], ["m"]),
        helper.make_node("Celu", ["m"], ["c"], alpha=0.5),
        helper.make_node("Transpose", ["c"], ["t"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["t", "taken", "kept"], ["y"], hidden_size=8, **attributes),
    ]
    weights = [constant("w", drawn(80, 16)), constant("taken", drawn(1, 32, 16)), constant("kept", drawn(1, 32, 8))]
    return model_of(nodes, {"x": shape}, {"y": None}, [*weights, constant("scales", floats(1, 1, 1.6))])


RESIZED = helper.make_node("Resize", ["x", "", "scales"], ["z"], mode="linear")
"""Of 32 features it makes no whole number, of 50 it makes 80."""


def inspected(model: ModelProto, path: Path) -> dict[str, Any]:
    path.write_bytes(model.SerializeToString())
    told: list[dict[str, Any]] = []
    pulse = Pulse(told.append, RunClock(0.0))
    try:
        inspect_network({"network": str(path)}, ControlReader(), pulse)
    finally:
        pulse.close()
    return dict(told[-1]["inspection"])


@pytest.mark.tvm
@pytest.mark.parametrize(("before", "features"), [([], 80), ([RESIZED], 50)], ids=["unknown sizes", "refused sizes"])
def test_where_sizes_are_open_they_decide_what_is_written_out(
    before: list[NodeProto], features: int, tmp_path: Path
) -> None:
    """No stand-in is the 80 features that a layer multiplies."""
    path = tmp_path / "speech.onnx"
    asked = inspected(speech(["batch", "time", "features"], *before), path)["dynamic"]
    assert [one["symbol"] for one in asked] == ["batch", "time", "features"]
    assert not operator_types(cleaned(path, {"x": [1, 5, features]})) & {"LSTM", "Celu"}


def test_places_of_a_pooling_that_are_read_are_refused_at_once(tmp_path: Path) -> None:
    sides = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["v", "i"], **sides),
        helper.make_node("MaxUnpool", ["v", "i"], ["y"], **sides),
    ]
    model = model_of(nodes, {"x": ["N", 2, 4, 4]}, {"y": None}, [])
    with pytest.raises(NetworkError, match="the places of its largest numbers are read"):
        inspected(model, tmp_path / "network.onnx")


def steps_behind_a_loop() -> ModelProto:
    """Rows of what a Loop makes, at computed places."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["more"], ["on"]), helper.make_node("Identity", ["x"], ["row"])],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["steps", ""], ["rows"], body=body),
        helper.make_node("ArgMax", ["x"], ["places"], axis=1),
        helper.make_node("GatherND", ["rows", "places"], ["y"]),
    ]
    return model_of(nodes, {"x": [4, 4]}, {"y": None}, [constant("steps", np.asarray(3))])


def mask_of_lengths() -> ModelProto:
    """Up to the longest, which is x's largest number."""
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["longest"], keepdims=0),
        helper.make_node("Range", ["zero", "longest", "one"], ["y"]),
    ]
    weights = [constant("zero", np.float32(0)), constant("one", np.float32(1))]
    return model_of(nodes, {"x": [4]}, {"y": None}, weights)


def places_of_a_row() -> ModelProto:
    """As many as x has."""
    nodes = [
        helper.make_node("Size", ["x"], ["size"]),
        helper.make_node("Range", ["zero", "size", "one"], ["places"]),
        helper.make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "numbers"], ["y"]),
    ]
    weights = [constant("zero", np.asarray(0)), constant("one", np.asarray(1))]
    return model_of(nodes, {"x": ["size"]}, {"y": None}, weights)


def test_a_range_of_the_sizes_is_taken(tmp_path: Path) -> None:
    assert inspected(places_of_a_row(), tmp_path / "network.onnx")["dynamic"]


def test_what_is_divided_by_its_length_is_taken(tmp_path: Path) -> None:
    node = helper.make_node("LpNormalization", ["x"], ["y"])
    assert inspected(model_of([node], {"x": ["batch", 4]}, {"y": None}, []), tmp_path / "network.onnx")["dynamic"]


@pytest.mark.tvm
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (speech([1, "time", 80], activations=["Relu", "Tanh", "Tanh"]), "LSTM: only recurrent operators"),
        (speech([1, 65, 80]), "LSTM: only recurrent operators"),
        (speech([1, 5, 32], RESIZED), "32 times its scale 1.6"),
        (speech([1, "time", "features"], helper.make_node("Det", ["x"], ["z"])), "Det: TVM cannot import"),
        (steps_behind_a_loop(), "Loop: TVM cannot import"),
        (mask_of_lengths(), "Range: how much comes out .* with its masks as inputs"),
    ],
    ids=["whatever the time", "too long", "its own reason", "whatever the sizes", "what comes first", "lengths"],
)
def test_what_no_sizes_make_importable_is_refused_at_once(model: ModelProto, words: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=words):
        inspected(model, tmp_path / "speech.onnx")
