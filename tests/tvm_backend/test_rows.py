"""Products with rows added, so that a tile of their sums fills the registers: how many, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import Compiled, compiled, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

AVX2, AVX512 = (8, 16), (16, 32)
"""Lanes and registers."""


@pytest.fixture
def avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows as a processor with 16 registers needs them, whichever this is."""
    from workers.tvm_backend import rows

    monkeypatch.setattr(rows, "vector_lanes", lambda target: AVX2[0])
    monkeypatch.setattr(rows, "vector_registers", lambda target: AVX2[1])


@pytest.mark.parametrize(
    ("extents", "columns", "machine", "rows"),
    [
        ((14, 14), 512, AVX2, 198),
        ((7, 7), 1024, AVX2, 50),
        ((28, 28), 256, AVX2, 792),
        ((14, 14), 576, AVX2, None),  # 4 x 3
        ((128,), 768, AVX2, None),
        ((15, 15), 64, AVX2, None),  # 5 x 2
        ((16,), 256, AVX2, None),  # 18 are too many
        ((4,), 512, AVX2, None),
        ((14, 14), 1000, (16, 16), None),  # no whole vectors
        ((14, 14), 512, AVX512, None),  # 14 x 2
        ((13, 13), 1008, AVX512, None),  # 13 x 1
        ((197,), 768, AVX512, 198),
    ],
)
def test_rows_are_added_where_no_tile_fills_the_registers(
    extents: tuple[int, ...], columns: int, machine: tuple[int, int], rows: int | None
) -> None:
    from workers.tvm_backend.rows import enough

    assert enough(extents, columns, *machine) == rows


def pointwise(batch: int = 1) -> ModelProto:
    """1 x 1 convolutions of 14 x 14 places, one with every second of them, with a residual, x * sigmoid(x) and ReLU6."""
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["s"]),
        helper.make_node("Mul", ["c", "s"], ["m"]),
        helper.make_node("Conv", ["m", "w1"], ["d"]),
        helper.make_node("Add", ["d", "m"], ["a"]),
        helper.make_node("Clip", ["a", "low", "high"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["y"], strides=[2, 2]),
    ]
    weights = [
        constant("w0", drawn(16, 8, 1, 1)),
        constant("b", drawn(16)),
        constant("w1", drawn(16, 16, 1, 1, seed=1)),
        constant("w2", drawn(32, 16, 1, 1, seed=2)),
        constant("low", np.float32(0)),
        constant("high", np.float32(6)),
    ]
    return model_of(nodes, {"x": [batch, 8, 14, 14]}, {"y": None}, weights)


def attention(batch: int, tokens: int = 49) -> ModelProto:
    """Products of so many rows a member of the batch: with weights, and of two tensors that are computed."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("MatMul", ["s", "q"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    weights = [constant("w", drawn(24, 32)), constant("b", drawn(32))]
    return model_of(nodes, {"x": [batch, tokens, 24]}, {"y": None}, weights)


def padded(one: Compiled) -> list[list[Any]]:
    """The blocks of programs with rows added."""
    from workers.tvm_backend.layout_free import blocks

    programs = [blocks(workload.mod["main"]) for workload in one.workloads]
    return [program for program in programs if "rows" in {block.name_hint for block in program}]


@pytest.mark.parametrize(
    ("model", "count"),
    [(pointwise(), 3), (pointwise(2), 3), (attention(1), 2), (attention(3), 1), (attention(7, 7), 1)],
)
def test_whatever_the_configuration_the_network_computes_the_same(
    model: ModelProto, count: int, avx2: None, tmp_path: Path
) -> None:
    one = compiled(model, tmp_path)
    assert len(padded(one)) == count
    x = drawn_input(one.shape)
    wanted = reference(model, x)
    for best in ({}, *(one.drawn(np.random.default_rng(seed)) for seed in range(4))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-4)


def test_what_follows_a_convolution_goes_by_its_rows(avx2: None, tmp_path: Path) -> None:
    """Else no tile of rows could be handed to it, and all of the sums would go through memory."""
    for product, following in padded(compiled(pointwise(), tmp_path)):
        assert product.name_hint == "rows"
        assert [int(axis.dom.extent) for axis in following.iter_vars] in ([196, 16], [49, 32])


@pytest.mark.mutation
def test_fewer_rows_than_there_are_are_found(avx2: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import rows

    right = rows.enough
    monkeypatch.setattr(rows, "enough", lambda *asked: (found := right(*asked)) and found - 12)
    model = pointwise()
    one = compiled(model, tmp_path)
    x = drawn_input(one.shape)
    assert not np.allclose(one.run({}, x), reference(model, x), rtol=1e-4, atol=1e-4)
