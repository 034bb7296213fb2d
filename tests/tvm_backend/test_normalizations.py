"""Normalisations as ONNX Runtime's optimiser writes them, and rows that are taken through all their steps at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, compiled, compiled_right, drawn_input
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


def by_rows(kind: str, shape: list[int], constants: int = 0, **attributes: int) -> ModelProto:
    """An operator with so many constants of its rows, a sum before it and an activation behind."""
    names = ["scale", "bias"][:constants]
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node(kind, ["a", *names], ["b"], **attributes),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    row = shape[attributes.get("axis", -1) :]
    weights = [constant(name, drawn(*row, seed=place)) for place, name in enumerate(names)]
    return model_of(nodes, {"x": shape}, {"y": None}, weights, opset=18)


def taken(one: Compiled) -> list[int]:
    """Places of the operators that the rule schedules."""
    from workers.tvm_backend.normalizations import RULE

    return [place for place, workload in enumerate(one.workloads) if RULE in workload.mod.script()]


@pytest.mark.tvm
@pytest.mark.parametrize(
    ("model", "programs"),
    [
        (by_rows("Softmax", [2, 4, 16, 128]), 2),
        (by_rows("Softmax", [1, 3, 49, 49]), 1),
        (by_rows("Softmax", [6, 50]), 2),
        (by_rows("Softmax", [4, 197]), 1),
        (by_rows("LogSoftmax", [1, 9, 64]), 2),
        (by_rows("LayerNormalization", [1, 7, 7, 96], 2), 2),
        (by_rows("LayerNormalization", [3, 768], 1), 2),
        (by_rows("LayerNormalization", [64, 64], 2), 2),
        (by_rows("LayerNormalization", [4, 6, 16], 2, axis=1), 2),
    ],
    ids=["softmax", "sevens", "fives", "a prime number", "logarithm", "norm", "scale", "square", "two axes"],
)
def test_every_program_by_rows_comes_to_what_the_reference_does(
    model: ModelProto, programs: int, tmp_path: Path
) -> None:
    one = compiled(model, tmp_path)
    x = drawn_input(one.shape)
    wanted, best = reference(tmp_path / "network.onnx", x), one.drawn(np.random.default_rng(0))
    (place,) = taken(one)
    (sketch,) = one.workloads[place].sketches
    assert sketch.size == programs
    for choice in range(programs):
        best[place] = (0, (choice,) if programs > 1 else (), 1e-6)
        script = one.workloads[place].schedule(*best[place][:2]).mod.script()
        assert script.count("T.parallel") == 1
        assert script.count("T.vectorized") >= 3 or one.shape[-1] == 197
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.tvm
@pytest.mark.parametrize(
    "model",
    [
        by_rows("Softmax", [1, 128]),
        by_rows("Softmax", [128]),
        by_rows("Softmax", [300, 3]),
        by_rows("Softmax", [2, 16, 6, 6], axis=1),
        by_rows("Softmax", [2, 16, 16], axis=1),
        by_rows("ReduceSum", [4, 128]),
    ],
    ids=["one row", "no rows", "three classes", "channels first", "a middle axis", "a sum alone"],
)
def test_others_keep_the_rules_of_tvm(model: ModelProto, tmp_path: Path) -> None:
    assert taken(compiled_right(model, tmp_path, seeds=1)) == []


@pytest.mark.tvm
@pytest.mark.mutation
def test_sums_that_are_taken_for_what_is_kept_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import normalizations

    monkeypatch.setattr(normalizations, "_summed_over", lambda schedule, block: [])
    with pytest.raises((AssertionError, ValueError)):
        test_every_program_by_rows_comes_to_what_the_reference_does(by_rows("Softmax", [2, 4, 16, 128]), 2, tmp_path)
