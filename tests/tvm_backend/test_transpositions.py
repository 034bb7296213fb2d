"""Transpositions: which are computed in tiles, and that they compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import cleaned, spec_of, target
from tests.tvm_backend.test_configurations import compiled_right
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

ROWS, COLUMNS = [1, 0, 3, 2], [0, 2, 1, 3]


def turned(shape: tuple[int, ...], axes: list[int], added: str = "") -> ModelProto:
    """Values with their axes in another order, times a number, and more values `added` "before" or "behind" them."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=axes),
        helper.make_node("Mul", ["t", "two"], ["m"]),
        helper.make_node("Add", ["s", "m"] if added == "before" else ["m", "s"], ["y"]),
    ]
    more = np.float32(0) if not added else np.arange(np.prod(shape), dtype=np.float32).reshape([shape[a] for a in axes])
    return model_of(nodes, {"x": list(shape)}, {"y": None}, [constant("two", np.float32(2)), constant("s", more)])


def extents(model: ModelProto, folder: Path) -> list[int]:
    """Of the loops of the operator that turns them; what all compute is right."""
    one = compiled_right(model, folder, seeds=2, tolerance=0)
    from tvm.s_tir import Schedule

    from workers.tvm_backend.blocks import blocks

    (operator,) = one.extracted
    schedule = Schedule(operator.mod)
    loops = schedule.get_loops(schedule.get_sblock(blocks(operator.mod["main"])[-1].name_hint))
    return [int(schedule.get(loop).extent) for loop in loops]


@pytest.mark.parametrize(
    ("shape", "axes", "added", "tiled"),
    [
        ((2, 3, 32, 64), ROWS, "", [3, 2, 64, 32]),
        ((2, 3, 64, 16), ROWS, "", [3, 2, 16, 64]),
        ((2, 3, 32, 64), ROWS, "before", [3, 2, 64, 32]),
        ((2, 3, 32, 64), ROWS, "behind", [3, 2, 64, 32]),
        ((1, 64, 128, 1), [0, 3, 2, 1], "", [1, 1, 128, 64]),
        ((2, 3, 64, 1), ROWS, "", None),
        ((2, 3, 1, 64), ROWS, "", None),
        ((2, 32, 48, 64), COLUMNS, "", None),
    ],
    ids=[
        "tiles",
        "one column",
        "added before",
        "added behind",
        "between others",
        "no rows",
        "no columns",
        "as it is read",
    ],
)
def test_what_is_read_along_another_axis_than_it_is_written_is_turned_in_tiles(
    shape: tuple[int, ...], axes: list[int], added: str, tiled: list[int] | None, tmp_path: Path
) -> None:
    found = extents(turned(shape, axes, added), tmp_path)
    from tvm.target import Target

    from workers.tvm_backend.hardware import vector_lanes

    if tiled is None:
        assert found == [shape[axis] for axis in axes]
    else:
        lanes = vector_lanes(Target(target()))
        *others, rows, columns = tiled
        assert found == [*others, rows // lanes, columns // lanes, lanes, lanes]


@pytest.mark.parametrize("places", [False, True], ids=["constant places", "places of an input"])
def test_what_is_read_where_other_values_say_is_left_alone(places: bool, tmp_path: Path) -> None:
    """GatherND transposes its places first."""
    at = np.int64([[0, 3], [2, 1], [1, 31], [2, 2]] * 4)
    nodes = [
        *([helper.make_node("Cast", ["at"], ["whole"], to=7)] if places else []),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("GatherND", ["r", "whole"], ["y"]),
    ]
    inputs = {"x": [3, 32, 16], **({"at": list(at.shape)} if places else {})}
    (tmp_path / "network.onnx").write_bytes(
        model_of(nodes, inputs, {"y": None}, [] if places else [constant("whole", at)]).SerializeToString()
    )
    spec = spec_of(tmp_path / "network.onnx")
    from tvm.target import Target

    from workers.tvm_backend.importer import import_network

    imported = import_network(cleaned(spec.network, spec.inputs), spec.inputs, Target(spec.target))
    assert imported.mod.functions_items()


@pytest.mark.mutation
def test_rows_that_are_taken_for_columns_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.tvm_backend.transpositions._read_along", lambda block: None)
    with pytest.raises(AssertionError):
        test_what_is_read_along_another_axis_than_it_is_written_is_turned_in_tiles(
            (2, 3, 32, 64), ROWS, "", [3, 2, 64, 32], tmp_path
        )


@pytest.mark.parametrize("shape", [(2, 3, 21, 64), (2, 3, 44, 21), (1, 2, 42, 40)])
def test_tiles_are_half_a_vector_to_two_of_them_where_no_vector_divides_an_axis(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    *others, rows, columns, row, column = extents(turned(shape, ROWS), tmp_path)
    from tvm.target import Target

    from workers.tvm_backend.hardware import vector_lanes

    lanes = vector_lanes(Target(target()))
    assert [*others, rows * row, columns * column] == [shape[axis] for axis in ROWS]
    assert all(lanes // 2 <= side <= 2 * lanes for side in (row, column))


def resized(channels: int, activated: bool) -> ModelProto:
    """What a convolution makes, enlarged, as the network's output."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Resize", ["c", "", "scales"], ["r"], mode="linear"),
        helper.make_node("Sigmoid" if activated else "Identity", ["r"], ["y"]),
    ]
    weights = [constant("w", drawn(channels, 4, 1, 1)), constant("scales", np.asarray([1, 1, 2, 2], np.float32))]
    return model_of(nodes, {"x": [1, 4, 8, 8]}, {"y": None}, weights, 18)


@pytest.mark.parametrize("activated", [False, True])
@pytest.mark.parametrize(("channels", "apart"), [(16, True), (3, False)])
def test_a_resized_image_is_transposed_behind_that(channels: int, apart: bool, activated: bool, tmp_path: Path) -> None:
    """Not one of few channels, of which no vectors are made."""
    one = compiled_right(resized(channels, activated), tmp_path, seeds=2, tolerance=1e-5)
    assert any("resize2d" in task.name and "transpose" in task.name for task in one.extracted) is not apart
