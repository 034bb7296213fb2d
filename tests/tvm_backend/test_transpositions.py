"""Transpositions: which are computed in tiles, and that they compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper
from tvm.s_tir import Schedule

from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import compiled, drawn_input
from tests.zoo import constant, model_of
from workers.tvm_backend import transpositions
from workers.tvm_backend.layout_free import blocks

pytestmark = pytest.mark.tvm

ROWS, COLUMNS = [1, 0, 3, 2], [0, 2, 1, 3]


def turned(shape: tuple[int, ...], axes: list[int]) -> ModelProto:
    """Values with their axes in another order, times a number."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=axes),
        helper.make_node("Mul", ["t", "two"], ["y"]),
    ]
    return model_of(nodes, {"x": list(shape)}, {"y": None}, [constant("two", np.float32(2))])


def loops(model: ModelProto, folder: Path) -> int:
    """How many the operator that turns them has; what all compute is right."""
    one = compiled(model, folder)
    x = drawn_input(one.shape)
    wanted = reference(folder / "network.onnx", x)
    for best in ({}, *(one.drawn(np.random.default_rng(seed)) for seed in range(4))):
        np.testing.assert_array_equal(one.run(best, x), wanted)
    (operator,) = one.extracted
    schedule = Schedule(operator.mod)
    return len(schedule.get_loops(schedule.get_sblock(blocks(operator.mod["main"])[-1].name_hint)))


@pytest.mark.parametrize(
    ("shape", "axes", "count"),
    [
        ((2, 3, 32, 64), ROWS, 6),
        ((2, 3, 64, 16), ROWS, 6),
        ((2, 3, 64, 10), ROWS, 4),
        ((2, 3, 10, 64), ROWS, 4),
        ((2, 32, 48, 64), COLUMNS, 4),
    ],
    ids=["tiles", "one column of tiles", "no whole rows", "no whole columns", "written as it is read"],
)
def test_what_is_read_along_another_axis_than_it_is_written_is_turned_in_tiles(
    shape: tuple[int, ...], axes: list[int], count: int, tmp_path: Path
) -> None:
    assert loops(turned(shape, axes), tmp_path) == count


@pytest.mark.mutation
def test_rows_that_are_taken_for_columns_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transpositions, "_read_along", lambda block: None)
    with pytest.raises(AssertionError):
        test_what_is_read_along_another_axis_than_it_is_written_is_turned_in_tiles((2, 3, 32, 64), ROWS, 6, tmp_path)
