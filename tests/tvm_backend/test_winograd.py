"""Convolutions by Winograd's minimal filtering: the matrices, the choice, and the network that comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from tests import zoo
from tests.tvm_backend.local import reference, target
from tests.tvm_backend.test_configurations import Compiled, drawn_input
from workers.baselines.session import OnnxRuntimeSession
from workers.baselines.verify import compare
from workers.networks.clean import cleaned
from workers.networks.tolerance import tolerances

pytestmark = pytest.mark.tvm


@pytest.fixture(scope="module", autouse=True)
def _runtime() -> None:
    target()


def one_dimension(filtering: object, data: NDArray[np.float64], kernel: NDArray[np.float64]) -> NDArray[np.float64]:
    """A' [(G g) * (B' d)]: `outputs` values of a filter of three taps (Lavin and Gray, equation 5)."""
    products: NDArray[np.float64] = (filtering.kernel @ kernel) * (filtering.data @ data)  # type: ignore[attr-defined]
    return filtering.product @ products  # type: ignore[attr-defined, no-any-return]


def filterings() -> list[object]:
    from workers.tvm_backend.winograd.filtering import F2, F4

    return [F2, F4]


def test_the_matrices_filter() -> None:
    random = np.random.default_rng(0)
    for filtering in filterings():
        data, kernel = random.standard_normal(filtering.inputs), random.standard_normal(3)  # type: ignore[attr-defined]
        wanted = np.correlate(data, kernel, mode="valid")
        np.testing.assert_allclose(one_dimension(filtering, data, kernel), wanted, atol=1e-12)


@pytest.mark.mutation
def test_matrices_with_one_wrong_sign_do_not() -> None:
    from dataclasses import replace

    random = np.random.default_rng(0)
    for filtering in filterings():
        for name in ("data", "kernel", "product"):
            matrix = getattr(filtering, name)
            for place in zip(*np.nonzero(matrix), strict=True):
                wrong = matrix.copy()
                wrong[place] *= -1
                data, kernel = random.standard_normal(filtering.inputs), random.standard_normal(3)  # type: ignore[attr-defined]
                found = one_dimension(replace(filtering, **{name: wrong}), data, kernel)  # type: ignore[type-var]
                assert not np.allclose(found, np.correlate(data, kernel, mode="valid"), atol=1e-6), (name, place)


def test_what_is_worth_it() -> None:
    """Large pictures with many channels are; small ones, whose transformed weights come from memory, are not."""
    from workers.tvm_backend.winograd.filtering import F2, F4, Convolution, chosen

    same = (1, 1, 1, 1)
    assert chosen(Convolution(1, 56, 56, 64, 64, same), 16, 4.0) is F4
    assert chosen(Convolution(1, 28, 28, 128, 128, same), 16, 4.0) is F4
    assert chosen(Convolution(1, 7, 7, 512, 512, same), 16, 4.0) is F2
    assert chosen(Convolution(1, 7, 7, 512, 512, same), 16, 16.0) is None, "weights come too slowly from memory"
    assert chosen(Convolution(1, 5, 5, 64, 64, same), 16, 4.0) is None, "tiles reach far over the edge"
    assert chosen(Convolution(1, 56, 56, 60, 64, same), 16, 4.0) is None, "channels are no whole vectors"


def test_a_target_measured_again_comes_to_the_same() -> None:
    from workers.tvm_backend.winograd.filtering import Convolution, chosen

    for side, channels in ((56, 64), (28, 128), (14, 256), (7, 512)):
        convolution = Convolution(1, side, side, channels, channels, (1, 1, 1, 1))
        assert len({chosen(convolution, 16, balance) for balance in (3.6, 4.0, 4.4)}) == 1
        assert chosen(convolution, 16, 20.0) is chosen(convolution, 16, 400.0), "measured beside other work"


def network(
    path: Path, channels: int, size: tuple[int, int], pads: list[int], batch: int = 1, residual: bool = False
) -> Path:
    random = np.random.default_rng(zoo.SEED)
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["a"], pads=pads),
        helper.make_node("Sigmoid", ["a"], ["q"]),
        helper.make_node("Mul", ["a", "q"], ["r"]),
        helper.make_node("Conv", ["r", "w1", "b1"], ["c"], pads=[1, 1, 1, 1]),
        *([helper.make_node("Add", ["c", "r"], ["s"])] if residual else []),
        helper.make_node("Relu", ["s" if residual else "c"], ["y"]),
    ]
    weights = [
        zoo._normal(random, "w0", channels, channels, 3, 3),
        zoo._normal(random, "b0", channels),
        zoo._normal(random, "w1", channels, channels, 3, 3),
        zoo._normal(random, "b1", channels),
    ]
    high, wide = size[0] + pads[0] + pads[2] - 2, size[1] + pads[1] + pads[3] - 2
    model = zoo.model_of(nodes, {"x": [batch, channels, *size]}, {"y": [batch, channels, high, wide]}, weights)
    path.write_bytes(zoo._bytes(model))
    return path


CLOSE = 1e-5
"""Of the largest output: F(4 x 4) rounds some ten times as coarsely as adding up products does."""

CASES = {
    "whole tiles": (32, (16, 16), [1, 1, 1, 1], 1, False),
    "tiles over the edge": (32, (15, 18), [1, 1, 1, 1], 1, False),
    "no padding": (32, (14, 14), [0, 0, 0, 0], 1, True),
    "uneven padding": (32, (13, 11), [0, 1, 2, 1], 1, True),
    "two images": (32, (12, 12), [1, 1, 1, 1], 2, True),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tile", ["F2", "F4"])
def test_networks_compute_the_same(case: str, tile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.tvm_backend.winograd import filtering, rewriting

    monkeypatch.setattr(rewriting, "chosen", lambda *_: getattr(filtering, tile))
    channels, size, pads, batch, residual = CASES[case]
    path = network(tmp_path / "network.onnx", channels, size, pads, batch, residual)
    compiled = Compiled(path, onnx.load(str(path)))
    names = [task.name for task in compiled.extracted]
    assert sum("winograd" in name for name in names) >= 2, names
    assert not any("conv2d" in name for name in names), names
    for task, workload in zip(compiled.extracted, compiled.workloads, strict=True):
        if "winograd" in task.name:
            assert [sketch.size for sketch in workload.sketches] == [1], "its schedule leaves no choice"
    x = drawn_input(compiled.shape)
    best = compiled.drawn(np.random.default_rng(3))
    assert len(best) == len(compiled.workloads)
    found, wanted = compiled.run(best, x), reference(path, x)
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= CLOSE * np.abs(wanted).max()


@pytest.mark.mutation
def test_a_wrong_transform_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights transformed without turning them: rows and columns swapped."""
    from workers.tvm_backend.winograd import filtering, rewriting

    right = filtering.weights_transformed
    monkeypatch.setattr(rewriting, "chosen", lambda *_: filtering.F4)
    monkeypatch.setattr(
        rewriting, "weights_transformed", lambda weights, filtering: right(weights.transpose(1, 0, 2, 3), filtering)
    )
    path = network(tmp_path / "network.onnx", 32, (16, 16), [1, 1, 1, 1])
    compiled = Compiled(path, onnx.load(str(path)))
    x = drawn_input(compiled.shape)
    found, wanted = compiled.run(compiled.drawn(np.random.default_rng(3)), x), reference(path, x)
    assert np.abs(found - wanted).max() > 100 * CLOSE * np.abs(wanted).max()


def test_sums_of_whole_numbers_are_left_alone(tmp_path: Path) -> None:
    """A quantised network rounds its sums: one that is not quite whole could fall to the other side."""
    model = onnx.load(str(network(tmp_path / "network.onnx", 64, (56, 56), [1, 1, 1, 1])))
    assert any("winograd" in task.name for task in Compiled(tmp_path / "network.onnx", model).extracted)
    relu = model.graph.node[-1]
    relu.input[0], rounded = "rounded", relu.input[0]
    model.graph.node.insert(len(model.graph.node) - 1, helper.make_node("Round", [rounded], ["rounded"]))
    assert not any("winograd" in task.name for task in Compiled(tmp_path / "network.onnx", model).extracted)


def test_those_of_a_network_quantised_at_run_time_are_filtered_exactly(tmp_path: Path) -> None:
    """TVM's import rounds there: no operator of the graph is named Round."""
    path = tmp_path / "dynamic.onnx"
    path.write_bytes(zoo._quantised(network(tmp_path / "network.onnx", 64, (56, 56), [1, 1, 1, 1]), "dynamic", False))
    model = cleaned(path, {})
    kinds = {node.op_type for node in model.graph.node}
    assert {"DynamicQuantizeLinear", "Conv"} <= kinds
    assert "Round" not in kinds
    compiled = Compiled(path, model)
    names = [task.name for task in compiled.extracted]
    assert any("winograd" in name for name in names), names
    assert any("matmul_pairs" in name for name in names), names
    drawn = compiled.drawn(np.random.default_rng(3))
    filtering = {i: drawn[i] for i, name in enumerate(names) if "winograd" in name or "matmul_pairs" in name}
    x = drawn_input(compiled.shape)
    found = compiled.run(filtering, x)
    verdict = compare(
        {"y": found}, OnnxRuntimeSession(path, 1, exact=True).run({"x": x}), tolerances(onnx.load(str(path)))
    )
    assert verdict.passed, verdict.reason
