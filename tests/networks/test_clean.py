from __future__ import annotations

import subprocess
import sys
from collections import Counter
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper

from tests import zoo
from tests.zoo import ZOO, constant, model_of
from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.networks import folding
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect_model

QUICK = [
    "tiny", "tiny_residual", "squeezenet", "mobilenet_like", "resnet18", "transformer_encoder",
    "resnet50", "densenet121", "inception_v1", "shufflenet",
]  # fmt: skip


def failing(model: ModelProto) -> ModelProto:
    raise RuntimeError("out of\norder")


def outputs(model: ModelProto, seed: int = 0, **shapes: list[int]) -> list[NDArray[Any]]:
    inputs = seeded_inputs(inspect_model(model), seed, shapes)
    return list(OnnxRuntimeSession(model.SerializeToString(), 1).run(inputs).values())


def same(a: list[NDArray[Any]], b: list[NDArray[Any]]) -> bool:
    return all(x.shape == y.shape and np.abs(x - y).max() <= 1e-4 * np.abs(x).max() for x, y in zip(a, b, strict=True))


SHAPES = {"tiny_residual": {"x": [2, 16, 14, 14]}}


@cache
def computed(path: Path, name: str) -> list[NDArray[Any]]:
    """By the network as it is."""
    return outputs(load(path), **SHAPES.get(name, {}))


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize("name", QUICK)
def test_cleaned_network_computes_the_same(zoo_cache: Path, name: str, simplifier: Any) -> None:
    path = ZOO[name](zoo_cache)
    result, report = clean(load(path), SHAPES.get(name, {}), simplifier)
    onnx.checker.check_model(result)
    assert same(computed(path, name), outputs(result))
    kinds = Counter(node.op_type for node in result.graph.node)
    assert not kinds.keys() & {"Sum", "Dropout", "Identity", "Constant", "ConstantOfShape", "Shape", "Flatten"}
    assert not kinds["Clip"]
    assert not kinds["BatchNormalization"]
    assert all(isinstance(sentence, str) for sentence in report)
    assert any("simplifier was not used (out of order)" in s for s in report) == (simplifier is failing)


def forgetting_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_statistics", lambda *read, right=folding._statistics: (*right(*read)[:2], 0.0))


@pytest.mark.mutation
def test_a_folding_that_forgets_the_mean_is_noticed(zoo_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetting_the_mean(monkeypatch)
    path = ZOO["mobilenet_like"](zoo_cache)
    result, report = clean(load(path), {}, failing)
    assert any("BatchNormalizations were folded into convolutions" in sentence for sentence in report)
    assert not same(computed(path, "mobilenet_like"), outputs(result))


MEASURED = """
import sys
from pathlib import Path
from workers.networks import clean
from workers.without import without

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

with without("torch", "sympy"):
    import onnxsim
before = peak()
clean.cleaned(sys.argv[1], {})
print(peak() - before)
"""


def test_cleaning_holds_the_weights_four_times_at_most(tmp_path: Path) -> None:
    """Read, handed to the simplifier and taken back; every copy more was half a gigabyte of a VGG."""
    weights = constant("w", np.random.default_rng(0).standard_normal((4096, 8192), np.float32))
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 4096]}, {"y": [1, 8192]}, [weights])
    (tmp_path / "large.onnx").write_bytes(model.SerializeToString())
    said = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path / "large.onnx")],
        check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert int(said.stdout) < 4 * len(weights.raw_data)


def test_sum_of_many_and_of_one_become_adds() -> None:
    nodes = [helper.make_node("Sum", ["x", "x", "w", "x"], ["s"]), helper.make_node("Sum", ["s"], ["y"])]
    model = model_of(nodes, {"x": [2, 3]}, {"y": [2, 3]}, [constant("w", np.ones(3, np.float32))])
    result, _ = clean(deepcopy(model), {}, failing)
    assert [node.op_type for node in result.graph.node] == ["Add"] * 3
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize(
    ("low", "high", "kept"),
    [
        (0.0, 6.0, False),
        (0.0, None, False),
        (-1.0, 1.0, True),
        (0.0, -1.0, True),
        (0.0, 1e9, True),
        (0.0, 3.4028235e38, False),
    ],
)
def test_only_clips_from_zero_are_rewritten(low: float, high: float | None, kept: bool) -> None:
    weights = [constant("w", np.full((1, 1, 1, 1), 4, np.float32)), constant("low", np.float32(low))]
    weights += [constant("high", np.float32(high))] if high is not None else []
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low"] + ["high"] * (high is not None), ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 1, 8, 8]}, {"y": [1, 1, 8, 8]}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    assert ("Clip" in {node.op_type for node in result.graph.node}) == kept
    assert same(outputs(model), outputs(result))


def test_identities_between_input_and_output_stay_when_nothing_else_is_left() -> None:
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Dropout", ["a"], ["y"])]
    model = model_of(nodes, {"x": [2]}, {"y": [2]}, [])
    result, _ = clean(deepcopy(model), {}, failing)
    assert [value.name for value in result.graph.output] == ["y"]
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
def test_an_input_read_for_its_shape_alone_goes_with_its_last_reader(simplifier: Any) -> None:
    model = zoo.shaped_like()
    result, report = clean(deepcopy(model), {"x1": [1, 8], "x2": [1, 8]}, simplifier)
    assert [value.name for value in result.graph.input] == ["x1"]
    assert "1 input that nothing reads was dropped" in report
    assert same(outputs(model), outputs(result))


def test_shared_weights_and_shared_convolutions_are_folded_only_where_it_is_right() -> None:
    random = np.random.default_rng(0)
    weights = [constant("w", random.standard_normal((2, 2, 1, 1)).astype("f"))]
    weights += [constant(n, random.uniform(0.5, 1.5, 2).astype("f")) for n in "abcd"]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "a", "b", "c_", "d"], ["n"]),
        helper.make_node("Conv", ["n", "w"], ["e"]),
        helper.make_node("BatchNormalization", ["e", "a", "b", "c_", "d"], ["f"]),
        helper.make_node("Add", ["e", "f"], ["y"]),
    ]
    weights[3].name = "c_"
    model = model_of(nodes, {"x": [1, 2, 4, 4]}, {"y": [1, 2, 4, 4]}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    kinds = Counter(node.op_type for node in result.graph.node)
    assert (kinds["BatchNormalization"], kinds["Conv"], kinds["Mul"], kinds["Add"]) == (0, 2, 1, 2)
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize("shape", [(2, 6), (1, 6, 9), (1, 6, 5, 4), (1, 6, 3, 2, 4)])
@pytest.mark.parametrize("mutated", [False, pytest.param(True, marks=pytest.mark.mutation)])
def test_a_normalisation_alone_is_a_product_and_a_sum(
    mutated: bool, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if mutated:
        forgetting_the_mean(monkeypatch)
    random = np.random.default_rng(0)
    weights = [constant(name, random.uniform(0.5, 1.5, 6).astype("f")) for name in "abcd"]
    nodes = [
        helper.make_node("BatchNormalization", ["x", "a", "b", "c", "d"], ["n"], epsilon=0.01),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    model = model_of(nodes, {"x": list(shape)}, {"y": list(shape)}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    assert Counter(node.op_type for node in result.graph.node) == {"Mul": 1, "Add": 1, "Relu": 1}
    assert same(outputs(model), outputs(result)) is not mutated


def test_a_normalisation_of_one_channel_s_numbers_keeps_its_axis() -> None:
    nodes = [helper.make_node("BatchNormalization", ["x", "a", "b", "c", "d"], ["y"])]
    model = model_of(nodes, {"x": [5]}, {"y": [5]}, [constant(name, np.ones(1, np.float32)) for name in "abcd"])
    result, _ = clean(deepcopy(model), {}, failing)
    assert [node.op_type for node in result.graph.node] == ["BatchNormalization"]


def test_a_normalisation_whose_statistics_are_told_when_it_runs_stays() -> None:
    nodes = [helper.make_node("BatchNormalization", ["x", "a", "b", "c", "d"], ["y"])]
    weights = [constant(name, np.ones(6, np.float32)) for name in "acd"]
    model = model_of(nodes, {"x": [1, 6, 4, 4], "b": [6]}, {"y": [1, 6, 4, 4]}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    assert [node.op_type for node in result.graph.node] == ["BatchNormalization"]


def test_missing_dynamic_shape_is_named(zoo_cache: Path) -> None:
    model = load(ZOO["tiny_residual"](zoo_cache))
    with pytest.raises(NetworkError, match=r"dimension 0 of x \(N\)"):
        clean(model, {})


def test_torch_is_not_loaded_to_clean_a_network(zoo_cache: Path) -> None:
    """It takes over a second and 190 MB; whoever needs it later still finds it."""
    code = (
        "import sys; from workers.networks.clean import cleaned; "
        f"cleaned({str(ZOO['tiny'](zoo_cache))!r}, {{}}); assert 'torch' not in sys.modules; import torch; torch.zeros(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
