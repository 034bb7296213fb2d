"""By which inputs a library is verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import NodeProto, helper

from tests.zoo import constant, model_of, quantised
from workers.baselines.arrays import save
from workers.baselines.verify import Verdict
from workers.child import peers
from workers.child.verification import _references, _run, verified
from workers.messages.spec import RunSpec
from workers.networks.tolerance import SINGLE


def taken(folder: Path, *nodes: NodeProto) -> tuple[float, bool]:
    """Largest input of a network that reads x, and whether its outputs move."""
    numbers = [
        constant(name, np.asarray(value, np.float32)) for name, value in (("small", 1e-5), ("one", 1.0), ("none", 0.0))
    ]
    path = folder / "network.onnx"
    path.write_bytes(model_of(list(nodes), {"x": [1, 64]}, {"y": [1, 64]}, numbers).SerializeToString())
    spec = RunSpec(str(path), {"kind": "llvm"}, 1, 1e11, 1e10)
    references, unmoved = _references(spec, folder, {"y": SINGLE})
    return max(float(np.abs(inputs["x"]).max()) for inputs in (one.inputs for one in references)), not unmoved


@pytest.mark.parametrize(
    ("factor", "last", "larger", "moving"),
    [
        ("one", "Relu", False, True),
        ("small", "Relu", True, True),
        ("none", "Relu", False, False),
        ("small", "Exp", True, True),
    ],
)
def test_inputs_are_larger_where_outputs_hardly_depend_on_small_ones(
    factor: str, last: str, larger: bool, moving: bool, tmp_path: Path
) -> None:
    """A constant is verified as far as it can be, which is said."""
    nodes = [
        helper.make_node("Mul", ["x", factor], ["m"]),
        helper.make_node("Add", ["m", "one"], ["a"]),
        helper.make_node(last, ["a"], ["y"]),
    ]
    largest, found = taken(tmp_path, *nodes)
    assert (largest > 50, found) == (larger, moving)


PACED = """
import json, sys, time
assert "--paced" in sys.argv
for path in sys.argv[sys.argv.index("--outputs") + 1:sys.argv.index("--runs")]:
    time.sleep(5.0)
    open(path, "w").close()
    print(json.dumps({"done": path}), flush=True)
    sys.stdin.readline()
"""


def test_others_measure_between_two_inputs_and_a_library_has_its_time_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three inferences of plain loops held the lock together, and where one took 100 s the library was ended."""
    (tmp_path / "run.py").write_text(PACED)
    monkeypatch.setattr(peers, "PATIENCE", 13.0)
    found = [tmp_path / f"outputs-{n}.npz" for n in range(3)]
    done = []

    @contextmanager
    def turn() -> Iterator[None]:
        yield
        done.append([path.exists() for path in found])

    _run(RunSpec("net.onnx", {"kind": "llvm"}, 1, 1e11, 1e10), tmp_path, found, found, turn)
    assert done == [[True, False, False], [True, True, False], [True, True, True]]


def test_inputs_are_not_so_large_that_nothing_is_finite(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Mul", ["e", "small"], ["m"]),
        helper.make_node("Mul", ["m", "small"], ["n"]),
        helper.make_node("Add", ["n", "one"], ["y"]),
    ]
    largest, moving = taken(tmp_path, *nodes)
    assert (largest < 50, moving) == (True, False)


def test_an_output_that_moves_hides_none_that_does_not(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Mul", ["x", "small"], ["m"]),
        helper.make_node("Add", ["m", "one"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
        helper.make_node("Mul", ["x", "none"], ["n"]),
    ]
    numbers = [
        constant(name, np.asarray(value, np.float32)) for name, value in (("small", 1e-5), ("one", 1.0), ("none", 0.0))
    ]
    path = tmp_path / "network.onnx"
    outputs = {name: [1, 64] for name in ("y", "z", "n")}
    path.write_bytes(model_of(nodes, {"x": [1, 64]}, outputs, numbers).SerializeToString())
    spec = RunSpec(str(path), {"kind": "llvm"}, 1, 1e11, 1e10)
    references, unmoved = _references(spec, tmp_path, {})
    assert unmoved == ["n"], "the scaled one moves with larger inputs"
    assert [sorted(made) for made in (one.outputs for one in references)] == [["n", "y", "z"]] * 3 + [["y"]] * 3
    larger = [float(np.abs(one.inputs["x"]).max()) > 50 for one in references]
    assert larger == [False] * 3 + [True] * 3, "what moves is looked at where it does"


@pytest.mark.parametrize("rows", [1, 32], ids=["nothing", "some rows"])
def test_inputs_are_positive_where_others_make_less_that_is_finite(rows: int, tmp_path: Path) -> None:
    """A logarithm of each number, and sums over all of them, or over two of a row."""
    nodes = [
        helper.make_node("Log", ["x"], ["l"]),
        helper.make_node("ReduceMean", ["l"], ["m"], keepdims=1, axes=[1]),
        helper.make_node("Mul", ["m", "one"], ["y"]),
    ]
    path = tmp_path / "network.onnx"
    one = [constant("one", np.ones((rows, 64), np.float32))]
    path.write_bytes(model_of(nodes, {"x": [rows, 64 // rows]}, {"y": [rows, 64]}, one).SerializeToString())
    spec = RunSpec(str(path), {"kind": "llvm"}, 1, 1e11, 1e10)
    references, unmoved = _references(spec, tmp_path, {})
    assert unmoved == []
    assert all((one.inputs["x"] > 0).all() and np.isfinite(one.outputs["y"]).all() for one in references)


def of_a_detector(cache: Path, work: Path, turned: bool) -> Verdict:
    """Of the network by ONNX's definition of its operators, which ONNX Runtime computes without optimisations; or of one whose
    rows are in another order."""
    path = quantised(cache, "tiny_detector", softmax=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(given: Sequence[Path], found: Sequence[Path], most: int) -> None:
        for inputs, outputs in zip(given, found, strict=True):
            with np.load(inputs) as stored:
                (y,) = session.run(["y"], dict(stored))
            save(outputs, {"y": y[:, :, ::-1] if turned else y})

    return verified(RunSpec(str(path), {"kind": "llvm"}, 1, 1e11, 1e10), work, work, run)


def test_a_network_that_computes_what_onnx_defines_is_right_where_onnx_runtime_does_not(
    tmp_path: Path, zoo_cache: Path
) -> None:
    """Detectors with a Softmax between two quantisations failed: its kernel for whole numbers was up to five steps off."""
    verdict = of_a_detector(zoo_cache, tmp_path, turned=False)
    assert verdict.passed, verdict.reason
    assert "as ONNX defines it" in verdict.sentence
    assert verdict.outputs[0].off == 0


@pytest.mark.mutation
def test_one_that_computes_something_else_fails_by_both(tmp_path: Path, zoo_cache: Path) -> None:
    verdict = of_a_detector(zoo_cache, tmp_path, turned=True)
    assert not verdict.passed
    assert "quantisation steps where 3 are allowed" in verdict.reason


def test_outputs_that_have_no_room_are_not_read(tmp_path: Path) -> None:
    """As a device may send them: a thousandth of it on its way, all of it in memory."""
    path = tmp_path / "network.onnx"
    node = helper.make_node("Relu", ["x"], ["y"])
    path.write_bytes(model_of([node], {"x": [1, 64]}, {"y": [1, 64]}, []).SerializeToString())

    def run(given: Sequence[Path], found: Sequence[Path], most: int) -> None:
        for outputs in found:
            np.savez_compressed(outputs, y=np.zeros(100 * most, np.int8))
            assert outputs.stat().st_size <= most

    with pytest.raises(peers.ArtifactFailed, match=r"outputs cannot be read: outputs-0\.npz is compressed"):
        verified(RunSpec(str(path), {"kind": "llvm"}, 1, 1e11, 1e10), tmp_path, tmp_path, run)
