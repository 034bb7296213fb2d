"""TVM's own tuning and ours on networks of a few operators: the whole command, real kernels."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from tests import zoo
from tests.command_line import Told
from tests.processes import eventually

pytestmark = [pytest.mark.tvm, pytest.mark.timeout(600)]  # searches of TVM's take minutes beside other work


def cells(out: Path) -> dict[str, dict[str, Any]]:
    """By arm."""
    found = [json.loads(path.read_text()) for path in sorted((out / "cells").glob("*.json"))]
    return {cell["key"]["arm"]: cell for cell in found}


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One matrix product."""
    path = tmp_path_factory.mktemp("network") / "product.onnx"
    weights = zoo.constant("w", np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32))
    model = zoo.model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [8, 16]}, {"y": [8, 32]}, [weights])
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture(scope="module")
def compared(told: Told, product: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("speed")
    arguments = ("--arms", "warm,auto", "--seeds", "0", "--trials-per-operator", 2, "--trials", 6)
    code, said, errors = told("speed", product, *arguments, "--out", out)
    assert code == 0, errors + said
    assert "warm (2 trials an operator)" in said
    assert "auto (6 trials)" in said
    assert "left for all" in errors
    return out


def test_both_sides_end_with_a_curve_and_a_verified_latency_beside_onnx_runtime(compared: Path) -> None:
    found = cells(compared)
    assert set(found) == {"warm", "auto"}
    for cell in found.values():
        assert cell["state"] == "done", cell["reason"]
        assert cell["tuning"]["curve"]
        assert cell["tuning"]["trials"] > 0
        # A turn that others disturb may have fewer.
        runs = [cell[side]["runs"] for side in ("end_to_end", "onnxruntime")]
        assert all(20 <= count <= 200 for count in runs), runs
        assert max(runs) > 100, runs
    assert found["warm"]["tuning"]["operators"] == found["auto"]["tuning"]["operators"]
    assert found["warm"]["tuning"]["key"] == found["auto"]["tuning"]["key"]
    assert 0 < found["warm"]["tuning"]["judged"] < 1e-2
    assert not list((compared / "work").iterdir())


def test_the_curves_are_drawn(compared: Path) -> None:
    picture = (compared / "speed-product-same.svg").read_text()
    assert picture.count("<polyline") == 2


def test_a_second_run_prints_the_cells_and_measures_nothing(told: Told, compared: Path, product: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (compared / "cells").iterdir()}
    arguments = ("--arms", "warm,auto", "--seeds", "0", "--trials-per-operator", 2, "--trials", 6)
    code, said, errors = told("speed", product, *arguments, "--out", compared)
    assert code == 0
    assert "2 of 2 cells are there already" in errors
    code, table, _ = told("speed", "--table", "--out", compared)
    assert code == 0
    assert table == said
    assert before == {path: path.stat().st_mtime_ns for path in (compared / "cells").iterdir()}


def test_tuning_of_the_plain_import_reaches_a_library(told: Told, product: Path, tmp_path: Path) -> None:
    """With builders that stay: stock's import 19 s of intrinsics in two processes, and that is all they differ in."""
    arguments = ("--arms", "warm", "--seeds", "0", "--trials-per-operator", 2, "--layout", "free")
    code, said, errors = told("speed", product, *arguments, "--out", tmp_path)
    assert code == 0, errors + said
    assert "warm (2 trials an operator)" in said
    cell = cells(tmp_path)["warm"]
    assert cell["state"] == "done", cell["reason"]
    assert cell["tuning"]["trials"] == 2
    assert cell["tuning"]["judged"] > 0


def test_a_second_run_begins_with_what_a_first_one_found(told: Told, product: Path, tmp_path: Path) -> None:
    code, said, errors = told("speed", product, "--arms", "again", "--seeds", "0", "--trials", 6, "--out", tmp_path)
    assert code == 0, errors + said
    cell = cells(tmp_path)["again"]
    assert cell["state"] == "done", cell["reason"]
    tuning = cell["tuning"]
    assert tuning["first"]["curve"]
    assert tuning["summary"]["operators_known"] == tuning["operators"] == 1
    assert all(0 < tuning[name] < 1e-2 for name in ("judged", "first_judged"))


def test_an_interrupt_keeps_no_half_cell_and_leaves_no_process(
    started: Callable[..., subprocess.Popen[str]], zoo_cache: Path, tmp_path: Path
) -> None:
    arguments = ("--arms", "warm", "--seeds", "0", "--trials-per-operator", 2)
    with started("speed", zoo.tiny(zoo_cache), *arguments, "--out", tmp_path) as process:
        began = lambda: list((tmp_path / "work").glob("*/log"))  # noqa: E731
        eventually(lambda: process.poll() is not None or began(), 180, "the start of the arm")
        assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert not list((tmp_path / "cells").iterdir())
    ours = str(tmp_path).encode()
    left = lambda: [path for path in Path("/proc").glob("[0-9]*/environ") if _read(path).count(ours)]  # noqa: E731
    eventually(lambda: not left(), 30, "the end of what it started")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
