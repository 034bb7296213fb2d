"""Convolutions in groups: vectors of channels stay within one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, compiled, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm


def convolution(groups: int, reads: int = 24, writes: int = 48) -> ModelProto:
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=groups, pads=[1, 1, 1, 1])
    weights = [constant("w", drawn(writes, reads // groups, 3, 3))]
    return model_of([node], {"x": [1, reads, 6, 6]}, {"y": None}, weights)


def vectors(network: Compiled) -> set[int]:
    """Channels at a time that the convolution may take."""
    from workers.tvm_backend.traces import SPATIAL

    found = [
        {option[-1] for option in [knob for knob in sketch.knobs if len(knob.options[0]) == SPATIAL][-1].options}
        for workload in network.workloads
        if "conv2d" in workload.mod.script()
        for sketch in workload.sketches
    ]
    return set.union(*found)


@pytest.mark.parametrize(("groups", "wanted"), [(6, {1, 2, 4, 8}), (12, {1, 2, 4}), (4, {1, 2, 3, 4, 6, 12})])
def test_a_vector_is_of_one_group(groups: int, wanted: set[int], tmp_path: Path) -> None:
    network = compiled(convolution(groups), tmp_path)
    assert vectors(network) == wanted
    x = drawn_input(network.shape)
    found = network.run(network.drawn(np.random.default_rng(0)), x)
    np.testing.assert_allclose(found, reference(tmp_path / "network.onnx", x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("groups", "reads"), [(1, 24), (48, 48)], ids=["one group", "a group each"])
def test_others_take_whatever_divides_their_channels(groups: int, reads: int, tmp_path: Path) -> None:
    assert {16, 24, 48} <= vectors(compiled(convolution(groups, reads), tmp_path))


@pytest.mark.parametrize(
    ("channels", "wanted"),
    [(96, {16, 32}), (32, {16, 32}), (384, {16, 32, 64, 128}), (48, {16}), (49, {16, 32, 64, 128})],
)
def test_without_tiles_a_vector_is_of_one_row(channels: int, wanted: set[int], tmp_path: Path) -> None:
    """Of 96 channels after a transposition 64 at a time took four to twelve times as long as 32."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1, 3]), helper.make_node("Relu", ["t"], ["y"])]
    network = compiled(model_of(nodes, {"x": [1, 4, 6, channels]}, {"y": None}, []), tmp_path)
    knobs = [knob for workload in network.workloads for sketch in workload.sketches for knob in sketch.knobs]
    assert [{option[0] for option in knob.options} for knob in knobs if knob.name == "vectorize"] == [wanted]
    x = drawn_input(network.shape)
    found = network.run(network.drawn(np.random.default_rng(0)), x)
    np.testing.assert_allclose(found, reference(tmp_path / "network.onnx", x), rtol=1e-4, atol=1e-5)
