"""Normalisations as ONNX Runtime's optimiser writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.test_configurations import compiled_right
from tests.zoo import constant, model_of
from workers.networks.clean import clean
from workers.networks.errors import NetworkError

SHAPE, WIDTH = [2, 5, 16], 16


def block(first: int, second: int, *outputs: str) -> ModelProto:
    """Of a transformer that normalises before it computes: the first sum goes on beside what is computed of its normalised
    form. So many of gamma, beta and bias have the two."""
    names = ["gamma", "beta", "bias"]
    nodes = [
        helper.make_node(
            "SkipLayerNormalization", ["x", "token", *names[:first]], ["a", *outputs], domain="com.microsoft"
        ),
        helper.make_node("MatMul", ["a", "w"], ["b"]),
        helper.make_node("SkipLayerNormalization", ["s", "b", *names[:second]], ["y"], domain="com.microsoft"),
    ]
    weights = [
        *(constant(name, drawn(WIDTH, seed=place)) for place, name in enumerate(names)),
        constant("token", drawn(*SHAPE, seed=7)),
        constant("w", drawn(WIDTH, WIDTH, seed=8)),
    ]
    model = model_of(nodes, {"x": SHAPE}, {"y": SHAPE}, weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.tvm
@pytest.mark.parametrize(("first", "second"), [(3, 3), (3, 1), (2, 2), (1, 3)])
def test_a_sum_that_is_read_and_what_is_left_out_are_computed(first: int, second: int, tmp_path: Path) -> None:
    compiled_right(block(first, second, "", "", "s"), tmp_path)


def test_what_is_for_training_is_refused() -> None:
    with pytest.raises(NetworkError, match="a mean or a deviation of it is read"):
        clean(block(3, 3, "s"), {"x": SHAPE}, lambda same: same)
