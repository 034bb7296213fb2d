"""A network beside the sum of its operators, timed in turns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests import zoo
from tests.tvm_backend.local import THREADS, spec_of
from workers.benchmarks.inside import ROUNDS, Round, figures
from workers.benchmarks.process import PartFailed, environment, result_of
from workers.engine.machine import Machine
from workers.engine.start import first_configurations
from workers.messages.spec import RunSpec

SLOW, OTHER = 0, 1
"""Operators of the network below."""
WAITING = 50
"""Times what operators take alone: no right library is as slow, however busy the machine."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two matrix products of 17 and 8 million FLOP, with a clamp between them."""
    path = tmp_path_factory.mktemp("network") / "products.onnx"
    random = np.random.default_rng(0)
    sizes = {"v": (256, 512), "w": (512, 128)}
    weights = [zoo.constant(name, random.standard_normal(size).astype(np.float32)) for name, size in sizes.items()]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    ]
    path.write_bytes(zoo.model_of(nodes, {"x": [64, 256]}, {"y": [64, 128]}, weights).SerializeToString())
    return path


def library(path: Path, folder: Path, plain: int | None = None) -> RunSpec:
    """Writes one of each operator's first configurations, but for the operator `plain`, which stays a loop."""
    spec = spec_of(path)
    import tvm

    from workers.child.archive import describe
    from workers.child.network import import_cleaned
    from workers.tvm_backend.library import Network
    from workers.tvm_backend.linking import export_library
    from workers.tvm_backend.programs import key_of

    parsed = tvm.target.Target(spec.target)
    imported, inspection = import_cleaned(spec, parsed, spec.layout)
    network = Network.of(imported, parsed)
    best, told = {}, {}
    for index, workload in enumerate(network.workloads):
        first = first_configurations(workload.sketches, Machine(cores=THREADS), 1)[0]
        best[index] = (first.sketch, tuple(first.choices), 1e-3)
        key = key_of(network.extracted[index].mod)
        told[str(index)] = {"key": key, "sketch": first.sketch, "choices": first.choices, "seconds": 1e-3}
    folder.mkdir()
    export_library(network.compiled({i: one for i, one in best.items() if i != plain}), folder / "model.so")
    describe("products", spec, imported.layout, folder, inspection, told)
    return spec


def measured(spec: RunSpec, folder: Path, work: Path) -> dict[str, Any]:
    order, env = {"spec": spec.to_json(), "folder": str(folder)}, environment(spec.threads, work)
    found = result_of("workers.benchmarks.inside", order, env, work / "log", lambda event: None, lambda: None)
    return dict(found["operators"])


@pytest.mark.tvm
def test_a_network_takes_about_what_its_operators_take_alone(network: Path, tmp_path: Path) -> None:
    found = measured(library(network, tmp_path / "library"), tmp_path / "library", tmp_path)
    assert [(row["index"], row["weight"]) for row in found["rows"]] == [(SLOW, 1), (OTHER, 1)]
    assert found["low"] <= found["ratio"] <= found["high"]
    # Tenths of a millisecond each; beside other work a thread waits some milliseconds for its core, mostly in the network.
    assert 0.25 < found["ratio"] < WAITING
    assert all(1e-6 < row[where] < 0.05 for row in found["rows"] for where in ("alone", "inside"))


@pytest.mark.tvm
@pytest.mark.mutation
def test_an_operator_that_is_slower_inside_shows_in_its_row_and_in_the_ratio(network: Path, tmp_path: Path) -> None:
    """The library has plain loops where its metadata names a configuration: some hundred times as slow."""
    found = measured(library(network, tmp_path / "library", plain=SLOW), tmp_path / "library", tmp_path)
    slow, other = ((row["inside"] - row["alone"]) / found["end_to_end"] for row in found["rows"])
    assert slow > 0.5
    assert slow > 2 * other, "the other waits for its threads, which slept meanwhile"
    assert found["low"] > WAITING


@pytest.mark.tvm
def test_a_library_of_other_operators_is_refused(network: Path, tmp_path: Path) -> None:
    spec, path = library(network, tmp_path / "library"), tmp_path / "library" / "metadata.json"
    metadata = json.loads(path.read_text())
    metadata["operators"]["1"]["key"] = "0" * 16
    path.write_text(json.dumps(metadata))
    with pytest.raises(PartFailed, match="operator 1 is not the one that was tuned"):
        measured(spec, tmp_path / "library", tmp_path)


def test_a_ratio_is_of_one_round_and_figures_are_medians() -> None:
    """A machine that is half as fast in every second round, and an operator that is not heard."""
    rounds = [
        Round(speed * 11e-3, {0: speed * 6e-3, 1: speed * 4e-3}, {0: speed * 7e-3})
        for speed in [1.0, 2.0] * (ROUNDS // 2)
    ]
    found = figures(rounds, {0: ("dense", 2), 1: ("pool", 1)})
    assert (found["low"], found["ratio"], found["high"]) == pytest.approx((1.1, 1.1, 1.1))
    assert (found["end_to_end"], found["alone"], found["inside"]) == pytest.approx((16.5e-3, 15e-3, 10.5e-3))
    dense, pool = found["rows"]
    assert dense == {
        "index": 0, "name": "dense", "weight": 2, "alone": pytest.approx(9e-3), "inside": pytest.approx(10.5e-3),
    }  # fmt: skip
    assert pool["inside"] is None
