"""A tuned network beside ONNX Runtime and the PyTorch module it was exported from."""

from __future__ import annotations

import io
import json
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Told

pytestmark = [pytest.mark.tvm, pytest.mark.timeout(600)]

FACTORY = """
import torch

def broken():
    raise RuntimeError("the weights are gone")

def product():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return torch.nn.Linear(16, 32)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """product.onnx and the factory.py it comes from."""
    torch = pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("exported")
    (folder / "factory.py").write_text(FACTORY)
    made: dict[str, Callable[[], object]] = {}
    exec(FACTORY, made)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            made["product"](), (torch.zeros(8, 16),), file, dynamo=False, opset_version=17, input_names=["x"]
        )
    (folder / "product.onnx").write_bytes(file.getvalue())
    return folder


@pytest.fixture(scope="module")
def measured(told: Told, exported: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("latency")
    torch = f"product={exported / 'factory.py'}:product"
    code, said, errors = told("latency", exported / "product.onnx", "--trials", 6, "--torch", torch, "--out", out)
    assert code == 0, errors + said
    return out, said


def test_every_library_gets_as_many_runs_and_the_module_computes_the_same(measured: tuple[Path, str]) -> None:
    (path,) = (measured[0] / "cells").glob("*.json")
    cell = json.loads(path.read_text())
    assert cell["state"] == "done", cell["reason"]
    broken = set() if shutil.which("g++") else {"torch.compile"}  # it wants a compiler
    assert cell["errors"].keys() == broken, cell["errors"]
    runs = {name: latency["runs"] for name, latency in cell["latencies"].items()}
    assert runs.keys() == {"TVM", "ONNX Runtime", "PyTorch", "torch.compile"} - broken
    # A turn ends after ten runs, or after 0.3 s, in which others may have taken the cores for long.
    assert all(20 <= count <= 200 for count in runs.values()), runs
    assert max(runs.values()) > 100, runs
    assert cell["torch"]["difference"] < 1e-5
    assert "other weights" not in measured[1]


def test_the_library_is_timed_in_turns_with_its_operators(measured: tuple[Path, str]) -> None:
    (path,) = (measured[0] / "cells").glob("*.json")
    cell = json.loads(path.read_text())
    found = cell["operators"]
    assert len(found["rows"]) == cell["tuning"]["operators"]
    assert all(0 < row[where] < 0.05 for row in found["rows"] for where in ("alone", "inside"))
    assert sum(row["alone"] for row in found["rows"]) == pytest.approx(found["alone"], rel=0.5)
    assert 0 < found["low"] <= found["ratio"] <= found["high"]
    assert f"{found['ratio']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" in measured[1]


def test_the_table_gives_ratios_and_their_mean(told: Told, measured: tuple[Path, str]) -> None:
    out, said = measured
    assert "geometric mean (auto, 6 trials, seed 0" in said
    assert told("latency", "--table", "--out", out)[1] == said


@pytest.mark.parametrize(("factory", "word"), [("broken", "the weights are gone"), ("nowhere", "no such function")])
def test_a_factory_that_fails_says_why(exported: Path, factory: str, word: str) -> None:
    from workers.child.peers import ArtifactFailed, Peer

    order = {"factory": f"{exported / 'factory.py'}:{factory}", "compiled": False, "threads": 1}
    with pytest.raises(ArtifactFailed, match=word):
        Peer("PyTorch", [sys.executable, "-m", "workers.benchmarks.torch_peer"], json.dumps(order))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["latency"], "--table"),
        (["latency", "nowhere.onnx"], "No such file"),
        (["latency", "{network}", "--torch", "other=a.py:b"], "NAME"),
        (["latency", "{network}", "--method", "lottery"], "lottery"),
        (["latency", "{network}", "{network}"], "rename"),
        (["speed", "{network}", "--arms", "lottery"], "lottery"),
        (["speed", "{network}", "--seeds", "a,b"], "whole numbers"),
        (["speed", "{network}", "--minutes", "0"], "greater than 0"),
        (["speed", "{network}", "--trials", "0"], "greater than 0"),
        (["speed", "{network}", "--minutes", "inf"], "finite"),
        (["latency", "{network}", "--minutes", "inf"], "finite"),
        (["methods", "--live", "--networks", "{network}", "--methods", "auto", "--seconds", "inf"], "finite"),
        (["speed", "--table"], "no cells"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    machine_cache: Path,
    exported: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    word: str,
) -> None:
    from workers.benchmarks.__main__ import main

    monkeypatch.setenv("XDG_CACHE_HOME", str(machine_cache))
    words = [text.format(network=exported / "product.onnx") for text in arguments]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr()
    assert word in said.err.splitlines()[-1]
    assert said.out == ""
