"""Constants that are read in several ways, and operators that have no schedules, in whatever configuration the rest gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn, one
from tests.tvm_backend.local import local_backend, reference
from tests.tvm_backend.test_configurations import Compiled, drawn_input
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm


def gathered() -> ModelProto:
    """Rows of constant places, of which GatherND reads one number of each axis."""
    return one("GatherND", [6, 7, 8], 17, np.asarray([[0, 1], [5, 6]], np.int64))


def sampled() -> ModelProto:
    """A constant grid, of which GridSample reads both coordinates for every point."""
    return one("GridSample", [1, 3, 8, 8], 17, np.tanh(drawn(1, 6, 6, 2)))


def scattered() -> ModelProto:
    """Two rows written anew behind a product, as slices are assigned to, and a ReLU."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ScatterND", ["m", "i", "u"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    weights = [
        constant("w", drawn(16, 32)),
        constant("i", np.asarray([[1], [6]], np.int64)),
        constant("u", drawn(2, 32, seed=1)),
    ]
    return model_of(nodes, {"x": [8, 16]}, {"y": None}, weights)


def cut() -> ModelProto:
    """A convolution and a bias, of whose channels the last few are dropped: no program reads theirs."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Slice", ["r", "from", "to", "axis"], ["y"]),
    ]
    places = [constant(name, np.asarray([at], np.int64)) for name, at in (("from", 0), ("to", 40), ("axis", 1))]
    weights = [constant("w", drawn(48, 16, 1, 1)), constant("b", drawn(48, seed=1)), *places]
    return model_of(nodes, {"x": [1, 16, 7, 7]}, {"y": None}, weights)


def differs(make: Callable[[], ModelProto], folder: Path) -> float:
    """The largest difference from ONNX Runtime with a drawn configuration of every operator."""
    path = folder / "network.onnx"
    path.write_bytes(make().SerializeToString())
    compiled = Compiled(path)
    best, x = compiled.drawn(np.random.default_rng(0)), drawn_input(compiled.shape)
    assert len(best) == len(compiled.workloads)
    return float(np.abs(compiled.run(best, x) - reference(path, x)).max())


@pytest.mark.parametrize("make", [gathered, sampled, scattered, cut])
def test_a_constant_that_is_read_in_several_ways_keeps_its_layout(
    make: Callable[[], ModelProto], tmp_path: Path
) -> None:
    assert differs(make, tmp_path) < 1e-5


@pytest.mark.mutation
@pytest.mark.parametrize("make", [gathered, sampled, cut])
def test_a_layout_after_the_first_read_is_noticed(
    make: Callable[[], ModelProto], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import layout_free

    monkeypatch.setattr(layout_free, "settle", lambda mod: mod)
    assert differs(make, tmp_path) > 0.1


def test_the_weights_of_a_product_may_be_laid_out_anew(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(one("Gemm", [8, 16], 17, drawn(16, 32), drawn(32)).SerializeToString())
    assert [workload.weights for workload in Compiled(path).workloads] == [(1, 2)]


def test_an_operator_without_schedules_is_named_and_holds_up_nobody(tmp_path: Path) -> None:
    from workers.engine.ports import Candidate

    path = tmp_path / "network.onnx"
    path.write_bytes(scattered().SerializeToString())
    backend = local_backend(path, tmp_path / "work")
    try:
        operators = backend.operators()
        assert [operator.name for operator in operators if "scatter" in operator.name] == []
        assert any("no schedules" in note and "scatter" in note for note in backend.notes)
        outcomes = backend.measure([Candidate(o.index, o.start[0], "start") for o in operators], {})
        assert all(outcome.seconds for outcome in outcomes), outcomes
    finally:
        backend.close()
