"""Clips from 0, through which layouts pass as Relus: one operation again in the end, and exact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.test_configurations import Compiled, compiled_right, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

CLOSE = 1e-5


def clipped() -> ModelProto:
    """A convolution and a Clip that reaches both of its bounds."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Clip", ["c", "low", "high"], ["y"])]
    weights = [constant("w", drawn(16, 8, 3, 3)), constant("low", np.float32(0)), constant("high", np.float32(1.7))]
    return model_of(nodes, {"x": [1, 8, 9, 9]}, {"y": None}, weights)


def written_out(inner: float = 2.0, outer: float = 2.0) -> ModelProto:
    """outer - Relu(inner - Relu(x)) of a convolution."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["above"]),
        helper.make_node("Sub", ["inner", "above"], ["room"]),
        helper.make_node("Relu", ["room"], ["left"]),
        helper.make_node("Sub", ["outer", "left"], ["y"]),
    ]
    weights = [
        constant("w", drawn(16, 8, 3, 3)),
        constant("inner", np.float32(inner)),
        constant("outer", np.float32(outer)),
    ]
    return model_of(nodes, {"x": [1, 8, 9, 9]}, {"y": None}, weights)


def subtractions(one: Compiled) -> int:
    from workers.tvm_backend.blocks import blocks

    return sum("subtract" in block.name_hint for workload in one.workloads for block in blocks(workload.mod["main"]))


def test_a_clip_is_one_operation_and_exact_at_its_bounds(tmp_path: Path) -> None:
    one = compiled_right(clipped(), tmp_path, tolerance=CLOSE)
    found = one.run({}, drawn_input(one.shape))
    assert one.imported.layout == "NHWC"
    assert subtractions(one) == 0
    assert (found == 0).any()
    assert (found == np.float32(1.7)).any()
    assert found.max() == np.float32(1.7)


def test_written_out_it_is_the_same(tmp_path: Path) -> None:
    assert subtractions(compiled_right(written_out(), tmp_path, tolerance=CLOSE)) == 0


def test_other_differences_stay(tmp_path: Path) -> None:
    assert subtractions(compiled_right(written_out(inner=3.0), tmp_path, tolerance=CLOSE)) == 2


@pytest.mark.mutation
def test_a_bound_that_is_not_compared_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import clips

    monkeypatch.setattr(clips, "constant", lambda expr, bound: np.float32([2.0]))
    with pytest.raises(AssertionError):
        compiled_right(written_out(inner=3.0), tmp_path, tolerance=CLOSE)
