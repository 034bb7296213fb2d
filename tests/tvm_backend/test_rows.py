"""Products with rows added, so that a tile of their sums fills the registers: how many, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
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


@pytest.fixture(params=[AVX2, AVX512], ids=["AVX2", "AVX-512"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Rows as such a processor needs them, whichever this is."""
    from workers.tvm_backend import rows

    found: tuple[int, int] = request.param
    monkeypatch.setattr(rows, "vector_lanes", lambda target: found[0])
    monkeypatch.setattr(rows, "vector_registers", lambda target: found[1])
    return found


@pytest.mark.parametrize(
    ("places", "columns", "lanes_and_registers", "rows"),
    [
        (14 * 14, 512, AVX2, 198),
        (7 * 7, 1024, AVX2, 50),
        (28 * 28, 256, AVX2, 792),
        (14 * 14, 576, AVX2, None),  # 4 x 3
        (196, 24, AVX2, None),  # the same
        (17 * 17, 24, AVX2, 296),
        (15 * 15, 64, AVX2, None),  # 5 x 2
        (16, 256, AVX2, None),  # 18 are too many
        (4, 512, AVX2, None),
        (14 * 14, 1000, AVX512, None),  # no whole vectors
        (14 * 14, 512, AVX512, None),  # 14 x 2
        (13 * 13, 1008, AVX512, 170),  # 5 x 3
        (13 * 13, 1040, AVX512, None),  # 13 x 1: 65 vectors
        (13 * 13, 512, AVX512, None),  # 13 x 2
        (19 * 19, 736, AVX512, 364),
        (17 * 17, 768, AVX512, 294),
        (197, 768, AVX512, 198),
    ],
)
def test_rows_are_added_where_no_tile_fills_the_registers(
    places: int, columns: int, lanes_and_registers: tuple[int, int], rows: int | None
) -> None:
    from workers.tvm_backend.rows import enough

    assert enough(places, columns, *lanes_and_registers) == rows


def pointwise(batch: int = 1, side: int = 14) -> ModelProto:
    """1 x 1 convolutions of so many places a side, one with every second of them, with a residual, x * sigmoid(x) and ReLU6."""
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
    return model_of(nodes, {"x": [batch, 8, side, side]}, {"y": None}, weights)


def signal() -> ModelProto:
    """Convolutions of a signal that read one place, the second every other of them, and of a volume of as many places."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["d"], strides=[2]),
        helper.make_node("Reshape", ["d", "sizes"], ["v"]),
        helper.make_node("Conv", ["v", "w2"], ["y"]),
    ]
    weights = [
        constant("w0", drawn(16, 8, 1)),
        constant("w1", drawn(32, 16, 1)),
        constant("w2", drawn(16, 32, 1, 1, 1)),
    ]
    weights += [constant("sizes", np.asarray([1, 32, 2, 7, 7]))]
    return model_of(nodes, {"x": [1, 8, 196]}, {"y": None}, weights)


def placed(side: int = 14) -> ModelProto:
    """1 x 1 convolutions to which a constant of each place is added, before ReLU6 and before what is constant in each row."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c"]),
        helper.make_node("Add", ["c", "places"], ["a"]),
        helper.make_node("Clip", ["a", "low", "high"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["d"]),
        helper.make_node("Mul", ["d", "rows"], ["y"]),
    ]
    weights = [
        constant("w0", drawn(16, 8, 1, 1)),
        constant("places", drawn(1, 16, side, side, seed=1)),
        constant("w1", drawn(32, 16, 1, 1, seed=2)),
        constant("rows", drawn(1, 1, side, 1, seed=3)),
        constant("low", np.float32(0)),
        constant("high", np.float32(6)),
    ]
    return model_of(nodes, {"x": [1, 8, side, side]}, {"y": None}, weights)


def several(side: int = 14) -> ModelProto:
    """A 1 x 1 convolution whose outputs are added to three pictures at once: what follows has more places than it has rows."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Add", ["c", "three"], ["y"])]
    weights = [constant("w", drawn(16, 8, 1, 1)), constant("three", drawn(3, 16, side, side, seed=1))]
    return model_of(nodes, {"x": [1, 8, side, side]}, {"y": None}, weights)


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
    from workers.tvm_backend.blocks import blocks
    from workers.tvm_backend.rows import SUMMED

    programs = [blocks(workload.mod["main"]) for workload in one.workloads]
    return [program for program in programs if SUMMED in {block.name_hint for block in program}]


CASES: dict[str, tuple[Callable[[], ModelProto], int, int]] = {
    "pictures": (pointwise, 3, 0),
    "two pictures": (lambda: pointwise(2), 3, 0),
    "pictures of 19 a side": (lambda: pointwise(1, 19), 2, 0),
    "signals and a volume": (signal, 3, 0),
    "constants of places": (placed, 2, 0),
    "three pictures of one": (several, 1, 0),
    "tokens": (lambda: attention(1), 2, 0),
    "tokens of three": (lambda: attention(3), 1, 0),
    "tokens of seven": (lambda: attention(7, 7), 1, 0),
    "59 tokens": (lambda: attention(1, 59), 2, 2),
}
"""How many products get rows with 16 registers, and with 32."""


@pytest.mark.parametrize("case", CASES)
def test_whatever_the_configuration_the_network_computes_the_same(
    case: str, machine: tuple[int, int], tmp_path: Path
) -> None:
    make, *counts = CASES[case]
    model = make()
    one = compiled(model, tmp_path)
    assert len(padded(one)) == counts[machine == AVX512]
    x = drawn_input(one.shape)
    wanted = reference(model, x)
    for best in ({}, *(one.drawn(np.random.default_rng(seed)) for seed in range(2))):
        np.testing.assert_allclose(one.run(best, x), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("machine", [AVX2], indirect=True)
@pytest.mark.parametrize("case", ["pictures", "tokens", "tokens of seven"])
def test_what_follows_goes_by_rows(case: str, machine: tuple[int, int], tmp_path: Path) -> None:
    """Else no tile of rows could be handed to it, and all of the sums would go through memory."""
    for program in padded(compiled(CASES[case][0](), tmp_path)):
        (product,) = [block for block in program if block.init is not None]
        (sums,) = [write.source for write in product.writes]
        read = [
            (block, one) for block in program if block.init is None for one in block.reads if one.source.same_as(sums)
        ]
        assert read
        for block, one in read:
            places = [axis.min for axis in one.region]
            assert all(place.same_as(axis.var) for place, axis in zip(places, block.iter_vars, strict=True))


def handed_over(one: Compiled) -> list[set[str]]:
    """Of each operator with rows added, the ways in which its design space has what follows come by the sums."""
    from workers.tvm_backend.blocks import blocks
    from workers.tvm_backend.rows import SUMMED

    with_rows = [one for one in one.workloads if SUMMED in {block.name_hint for block in blocks(one.mod["main"])}]
    return [{way for way in WAYS for trace in one.traces if f".{way}(" in str(trace)} for one in with_rows]


WAYS = ("reverse_compute_at", "cache_write")
FUSED = ["pictures", "two pictures", "constants of places"]


@pytest.mark.parametrize("machine", [AVX2], indirect=True)
@pytest.mark.parametrize("case", FUSED)
def test_what_follows_has_a_tiles_sums_while_they_are_near(case: str, machine: tuple[int, int], tmp_path: Path) -> None:
    found = handed_over(compiled(CASES[case][0](), tmp_path))
    assert found == [{"reverse_compute_at"}] * CASES[case][1]


@pytest.mark.mutation
@pytest.mark.parametrize("machine", [AVX2], indirect=True)
def test_without_views_the_sums_go_through_memory(
    machine: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import rows

    monkeypatch.setattr(rows.views, "by_axes", lambda schedule, name: None)
    assert all("cache_write" in ways for ways in handed_over(compiled(pointwise(), tmp_path)))


@pytest.mark.parametrize("machine", [AVX2], indirect=True)
def test_the_work_grows_by_the_rows_alone(
    machine: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x * sigmoid(x) reads its sums twice, and computes them once."""
    from workers.tvm_backend import rows

    def flops() -> float:
        return sum(workload.flops for workload in compiled(pointwise(), tmp_path).workloads)

    found = flops()
    monkeypatch.setattr(rows, "enough", lambda *_: None)
    assert 1 < found / flops() < 1.02


@pytest.mark.mutation
@pytest.mark.parametrize("machine", [AVX2], indirect=True)
def test_another_rows_sums_are_found(machine: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend import rows

    right = rows._place
    monkeypatch.setattr(rows, "_place", lambda row, extents: right(rows.te.max(row - 1, 0), extents))
    model = pointwise()
    one = compiled(model, tmp_path)
    x = drawn_input(one.shape)
    assert not np.allclose(one.run({}, x), reference(model, x), rtol=1e-4, atol=1e-4)
