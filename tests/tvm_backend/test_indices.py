"""What is looked up at computed places is compiled, and ends where its table does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import compiled
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

TABLE = [7, 5, 4]


def looking_up(kind: str, shape: list[int], **attributes: int) -> ModelProto:
    """In a table, at whole parts of x."""
    nodes = [
        helper.make_node("Cast", ["x"], ["at"], to=TensorProto.INT64),
        helper.make_node(kind, ["table", "at", *(["u"] if "Scatter" in kind else [])], ["y"], **attributes),
    ]
    updates = {"ScatterElements": shape, "ScatterND": [*shape[:-1], *TABLE[shape[-1] :]]}.get(kind, [1])
    return model_of(
        nodes, {"x": shape}, {"y": None}, [constant("table", drawn(*TABLE)), constant("u", drawn(*updates))], 18
    )


@pytest.mark.parametrize(
    ("model", "inside", "beyond", "ends"),
    [
        (looking_up("Gather", [2, 1]), [[-7], [3]], [[-1e9], [1e9]], [[-7], [6]]),
        (looking_up("GatherElements", [1, 2, 1], axis=1), [[[-5], [2]]], [[[-6], [7]]], [[[-5], [4]]]),
        (looking_up("GatherND", [2, 2]), [[1, -5], [6, 0]], [[9, -9], [-8, 5]], [[6, -5], [-7, 4]]),
        (looking_up("ScatterElements", [1, 1, 2], axis=2), [[[1, -1]]], [[[-9, 1e9]]], [[[-4, 3]]]),
        (looking_up("ScatterND", [2, 2]), [[1, -1], [2, 2]], [[1e9, -9], [0, 5]], [[6, -5], [0, 4]]),
    ],
)  # fmt: skip
def test_beyond_a_table_is_its_end(
    model: ModelProto, inside: object, beyond: object, ends: object, tmp_path: Path
) -> None:
    one = compiled(model, tmp_path)
    for at, same in ((inside, inside), (beyond, ends)):
        wanted = reference(tmp_path / "network.onnx", np.asarray(same, np.float32))
        np.testing.assert_allclose(one.run({}, np.asarray(at, np.float32)), wanted, rtol=1e-5)
