from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.zoo import constant, model_of, quantised, tiny, tiny_residual
from workers.baselines.arrays import load_reference
from workers.baselines.inputs import seeded_inputs
from workers.baselines.onnxruntime import _nudge_scales, measured
from workers.baselines.order import Latency, Order
from workers.baselines.session import OnnxRuntimeSession, refusal
from workers.baselines.verify import compare
from workers.networks.check import load
from workers.networks.inspect import Inspection, Port, inspect_model
from workers.networks.precision import stored_by


def baseline(order: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "workers.baselines"], input=order, capture_output=True, text=True, timeout=60
    )
    (line,) = done.stdout.splitlines()
    return done.returncode, json.loads(line)


def test_a_process_of_its_own_answers_with_latency_or_references(tmp_path: Path, zoo_cache: Path) -> None:
    order = Order(str(tiny_residual(zoo_cache)), str(tmp_path / "out"), shapes={"x": [3, 16, 14, 14]}, runs=10)
    code, answer = baseline(order.to_json())
    assert code == 0, answer
    assert answer["baseline"] == "onnxruntime"
    assert answer["latency"]["runs"] == 10
    assert 0 < answer["latency"]["lower_quartile"] <= answer["latency"]["median"] <= answer["latency"]["upper_quartile"]
    assert answer["references"] == {}
    assert not (tmp_path / "out").exists()
    code, answer = baseline(replace(order, runs=0).to_json())
    assert (code, answer["latency"]) == (0, None)
    assert sorted(answer["references"]) == ["0", "1", "2"]
    session = OnnxRuntimeSession(tiny_residual(zoo_cache), 1)
    for path in answer["references"].values():
        inputs, outputs = load_reference(path)
        assert inputs["x"].shape == (3, 16, 14, 14)
        assert compare(session.run(inputs), outputs).passed


@pytest.mark.parametrize("size", ["N", None], ids=["named", "unnamed"])
def test_onnx_runtime_is_told_the_sizes_that_are_compiled_for(
    size: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it computes from shapes alone is then done before the first run, here as in the library."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=constant("", np.ones(1, np.float32))),
        helper.make_node("Add", ["x", "c"], ["y"]),
    ]
    path, kept = tmp_path / "network.onnx", tmp_path / "kept.onnx"
    path.write_bytes(model_of(nodes, {"x": [size, 8]}, {"y": [size, 8]}, []).SerializeToString())
    start = onnxruntime.InferenceSession

    def watched(source: Any, options: Any, **others: Any) -> Any:
        options.optimized_model_filepath = str(kept)
        return start(source, options, **others)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    next(measured(Order(str(path), str(tmp_path / "out"), shapes={"x": [3, 8]}, seeds=(0,), runs=0)))
    assert {node.op_type for node in onnx.load(kept).graph.node} == {"Add"}


def test_operators_of_its_own_are_run_as_they_were_uploaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though sizes that have no name are set in a copy of the network."""
    node = helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")
    model = model_of([node], {"x": [None, 8]}, {"y": [None, 8]}, [])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    path, started = tmp_path / "network.onnx", list[onnx.ModelProto]()
    path.write_bytes(model.SerializeToString())
    start = onnxruntime.InferenceSession

    def watched(source: Any, options: Any, **others: Any) -> Any:
        started.append(onnx.ModelProto.FromString(source))
        return start(source, options, **others)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    next(measured(Order(str(path), str(tmp_path), shapes={"x": [3, 8]}, runs=1, warm_up=0.0)))
    assert [[node.op_type for node in one.graph.node] for one in started] == [["QuickGelu"]]


def steps_off(folder: Path, *, exact: bool = True) -> float:
    """How far the reference of a product of whole numbers is from what they are, at most."""
    weights = np.full((64, 8), 127, np.int8)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    constants = [constant("s", np.float32(0.02)), constant("z", np.uint8(128)), constant("w", weights)]
    path = folder / "network.onnx"
    path.write_bytes(model_of(nodes, {"x": [4, 64]}, {"y": [4, 8]}, constants).SerializeToString())
    if exact:
        answer = next(measured(Order(str(path), str(folder / "out"), seeds=(0,), runs=0)))
        inputs, outputs = load_reference(answer["references"]["0"])
    else:
        inputs = seeded_inputs(inspect_model(load(path)), 0)
        outputs = OnnxRuntimeSession(path, 1).run(inputs)
    quantised = np.clip(np.rint(inputs["x"] / np.float32(0.02)) + 128, 0, 255).astype(np.int64) - 128
    return float(np.abs(outputs["y"] - quantised @ weights.astype(np.int64)).max())


@pytest.fixture
def told_exact(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each session that is started, whether it is told never to clip sums: with VNNI they come out right either way."""
    start, told = onnxruntime.InferenceSession, list[bool]()

    def watched(source: Any, options: Any, **others: Any) -> Any:
        try:
            told.append(options.get_session_config_entry("session.x64quantprecision") == "1")
        except RuntimeError:  # it was told nothing
            told.append(False)
        return start(source, options, **others)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    return told


def test_references_of_whole_numbers_are_exact_on_every_processor(tmp_path: Path, told_exact: list[bool]) -> None:
    assert steps_off(tmp_path) == 0
    assert told_exact == [True, False, False], "nothing is put together in the others"


def test_what_is_timed_is_told_nothing_of_it(tmp_path: Path, zoo_cache: Path, told_exact: list[bool]) -> None:
    """As everybody runs it."""
    next(measured(Order(str(tiny(zoo_cache)), str(tmp_path), runs=1, warm_up=0.0)))
    assert told_exact == [False]


@pytest.mark.mutation
@pytest.mark.skipif("vnni" in Path("/proc/cpuinfo").read_text(), reason="with VNNI sums come out right either way")
def test_a_reference_that_may_clip_sums_is_noticed(tmp_path: Path) -> None:
    assert steps_off(tmp_path, exact=False) > 1000


STEP = np.float32(0.02)


def coded(x: Any) -> Any:
    """As int8, in steps of STEP."""
    return np.clip(np.rint(x / STEP), -128, 127).astype(np.int64)


def paired(*nodes: NodeProto, **outputs: list[int]) -> ModelProto:
    """`q` is the input in int8, and `d` what that stands for; weights are 127."""
    nodes = (
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        *nodes,
    )
    kept = {"s": STEP, "z": np.int8(0), "one": np.float32(1), "w": np.full((64, 64), 127, np.int8)}
    weights = [constant(name, values) for name, values in kept.items()]
    return model_of([*nodes], {"x": [64, 64]}, dict(outputs), weights, 17)


def product() -> tuple[ModelProto, Any]:
    """Of stored integers: ONNX Runtime makes its weights uint8, and has no such kernel."""
    nodes = (
        helper.make_node("QLinearMatMul", ["q", "s", "z", "w", "s", "z", "one", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "one", "z"], ["y"]),
    )
    return paired(*nodes, y=[64, 64]), lambda x: np.clip(
        np.rint(coded(x) @ np.full((64, 64), 127) * STEP**2), -128, 127
    )


def shared() -> tuple[ModelProto, Any]:
    """Weights of two products, which ONNX Runtime fails to make uint8 twice."""
    nodes = (
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["e"]),
        helper.make_node("MatMul", ["d", "e"], ["y"]),
        helper.make_node("MatMul", ["y", "e"], ["b"]),
    )
    return paired(*nodes, y=[64, 64], b=[64, 64]), lambda x: coded(x) @ np.full((64, 64), 127) * STEP**2


def computed() -> tuple[ModelProto, Any]:
    """Neither factor is constant, as in a transformer's attention."""
    nodes = (
        helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", "d"], ["y"]),
    )
    return paired(*nodes, y=[64, 64]), lambda x: coded(x).T @ coded(x) * STEP**2


@pytest.mark.parametrize("made", [product, shared, computed])
def test_products_of_int8_have_references_and_right_ones(made: Any, tmp_path: Path) -> None:
    model, right = made()
    path = tmp_path / "network.onnx"
    path.write_bytes(model.SerializeToString())
    assert not refusal(str(path))
    order = Order(str(path), str(tmp_path / "out"), seeds=(0,), runs=0, scale=10.0)
    inputs, outputs = load_reference(next(measured(order))["references"]["0"])
    wanted = right(inputs["x"])
    assert np.abs(outputs["y"] - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_a_quantised_network_has_references_operator_by_operator_and_of_other_roundings(
    tmp_path: Path, zoo_cache: Path
) -> None:
    path = quantised(zoo_cache, "tiny_detector", softmax=True)
    told = next(measured(Order(str(path), str(tmp_path), seeds=(0,), runs=0)))
    given, fused = load_reference(told["references"]["0"])
    (same, defined), (nearly, nudged) = map(load_reference, told["others"]["0"])
    assert np.array_equal(given["x"], same["x"])
    assert 0 < np.abs(nearly["x"] / given["x"] - 1).max() < 1e-6
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (plain,) = onnxruntime.InferenceSession(path, options).run(None, given)
    assert np.array_equal(defined["y"], plain)
    assert np.mean(fused["y"] != plain) > 0.1
    assert np.allclose(nudged["y"], plain, rtol=1e-6), "none of these lies halfway between two steps"
    assert not np.array_equal(nudged["y"], plain), "the last scale is another"
    assert next(measured(Order(str(tiny(zoo_cache)), str(tmp_path), seeds=(0,), runs=0)))["others"] == {"0": []}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_scales_are_nudged_wherever_they_stand(zoo_cache: Path, form: str) -> None:
    """Exporters write constants as operators, and operators on stored integers have the scale of their result."""
    model = onnx.load(str(quantised(zoo_cache, "tiny_detector", form)))
    scales = set(filter(None, map(stored_by, model.graph.node)))
    before = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in scales}
    assert len(before) == len(scales) > 3
    for tensor in [t for t in model.graph.initializer if t.name in scales][::2]:
        model.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
        model.graph.initializer.remove(tensor)
    _nudge_scales(model)
    after = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in scales}
    after |= {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in model.graph.node
        if node.op_type == "Constant"
    }
    assert all(not np.array_equal(after[name], before[name]) for name in scales)
    assert all(np.allclose(after[name], before[name], rtol=1e-6) for name in scales)


def test_uploading_asks_for_what_verifying_needs(tmp_path: Path, told_exact: list[bool]) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(computed()[0].SerializeToString())
    assert not refusal(str(path))
    assert told_exact == [True]


@pytest.mark.parametrize(
    ("order", "code", "words"),
    [
        ("[]", 2, "not a JSON object"),
        ('{"network": "x", "outputs_dir": "y", "seeds": []}', 2, "seed"),
        ('{"network": "none.onnx", "outputs_dir": "y"}', 1, "none.onnx"),
    ],
)
def test_wrong_orders_are_answered_with_an_error(order: str, code: int, words: str) -> None:
    found, answer = baseline(order)
    assert found == code
    assert words in answer["error"]


def inspection(*ports: Port) -> Inspection:
    return Inspection(ports, (), (), 17, 8, "", 1, {}, 0, 0, {}, 0.0)


def test_inputs_follow_seed_type_and_vocabulary() -> None:
    described = inspection(
        Port("x", "float32", (64, 64)),
        Port("ids", "int64", ("N", 7)),
        Port("kind", "int32", (500,)),
        Port("mask", "bool", (9,)),
    )
    first = seeded_inputs(described, 3, {"ids": [500, 7]}, {"ids": 1000})
    again = seeded_inputs(described, 3, {"ids": [500, 7]}, {"ids": 1000})
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert {name: str(array.dtype) for name, array in first.items()} == {
        "x": "float32",
        "ids": "int64",
        "kind": "int32",
        "mask": "bool",
    }
    assert abs(first["x"].std() - 1) < 0.05  # 4096 normal draws: standard error 0.011
    assert first["ids"].min() >= 0
    assert 500 < first["ids"].max() < 1000
    assert set(first["kind"]) == {0, 1}
    assert not np.array_equal(first["x"], seeded_inputs(described, 4, {"ids": [500, 7]})["x"])


def test_an_input_without_a_static_shape_is_named() -> None:
    with pytest.raises(ValueError, match="ids"):
        seeded_inputs(inspection(Port("ids", "int64", ("N", 7))), 0)


def test_session_times_every_run_with_the_given_clock(zoo_cache: Path) -> None:
    ticks = count(0.0, 0.25)
    session = OnnxRuntimeSession(tiny(zoo_cache), 1, clock=lambda: next(ticks))
    with pytest.raises(RuntimeError, match="bind"):
        session.time(1)
    session.bind(seeded_inputs(inspect_model(load(tiny(zoo_cache))), 0))
    assert session.time(4).tolist() == [0.25] * 4
    assert len(session.time(4, longest=1.0)) == 2  # a look at the clock between two runs costs a tick, too
    assert len(session.time(4, longest=0.0)) == 1


def test_latency_gives_quartiles() -> None:
    found = Latency.of(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (found.lower_quartile, found.median, found.upper_quartile) == (2.0, 3.0, 4.0)


@pytest.mark.parametrize("size", [4, None], ids=["fixed", "unnamed"])
def test_an_input_that_nothing_reads_is_given_all_the_same(size: int | None, tmp_path: Path) -> None:
    """ONNX Runtime demands it; the form never asks for its size."""
    path = tmp_path / "network.onnx"
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path.write_bytes(model_of(nodes, {"x": [1, size], "mask": [1, size]}, {"y": [1, size]}, []).SerializeToString())
    order = Order(str(path), str(tmp_path / "out"), shapes={"x": [1, 4]}, seeds=(0,), runs=0)
    inputs, outputs = load_reference(next(measured(order))["references"]["0"])
    assert set(inputs) == {"x"}
    assert np.array_equal(outputs["y"], np.maximum(inputs["x"], 0))


def test_references_ask_for_every_row_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    table = constant("table", np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32))
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"])]
    inputs = [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, [1, 512])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 512, 4])]
    graph = helper.make_graph(nodes, "embedding", inputs, outputs, [table])
    path.write_bytes(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    given, _ = load_reference(
        next(measured(Order(str(path), str(tmp_path / "out"), seeds=(0,), runs=0)))["references"]["0"]
    )
    assert set(given["ids"].ravel()) == set(range(50))


def test_lengths_reach_as_far_in_open_sizes_as_in_fixed_ones(tmp_path: Path) -> None:
    """What is masked beyond them is compared with a range, whose size depends on the sizes that are chosen."""
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "one"], ["time"], axis=0),
        helper.make_node("Range", ["zero", "time", "one"], ["range"]),
        helper.make_node("Less", ["range", "lengths"], ["inside"]),
        helper.make_node("Where", ["inside", "x", "far"], ["y"]),
    ]
    constants = [constant("one", np.int64(1)), constant("zero", np.int64(0)), constant("far", np.float32(-1.0))]

    def lengths(size: int | str) -> list[int]:
        shapes = {"x": (onnx.TensorProto.FLOAT, [1, size]), "lengths": (onnx.TensorProto.INT64, [1])}
        inputs = [helper.make_tensor_value_info(name, *described) for name, described in shapes.items()]
        outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, size])]
        graph = helper.make_graph(nodes, "masked", inputs, outputs, constants)
        path = tmp_path / f"{size}.onnx"
        made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
        path.write_bytes(made.SerializeToString())
        order = Order(str(path), str(tmp_path / "out"), shapes={"x": [1, 200], "lengths": [1]}, runs=0)
        told = next(measured(order))["references"]
        return [int(load_reference(told[str(seed)])[0]["lengths"][0]) for seed in order.seeds]

    assert lengths("time") == lengths(200)
    assert max(lengths("time")) > 100


@pytest.mark.parametrize("rows", [1, None], ids=["fixed", "unnamed"])
def test_what_is_found_in_any_order_is_compared_in_falling_order(rows: int | None, tmp_path: Path) -> None:
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "places"], sorted=0)]
    path = tmp_path / "network.onnx"
    model = model_of(nodes, {"x": [rows, 1000]}, {"y": [rows, 20]}, [constant("k", np.array([20]))])
    path.write_bytes(model.SerializeToString())
    order = Order(str(path), str(tmp_path / "out"), shapes={"x": [1, 1000]}, seeds=(0,), runs=0)
    inputs, outputs = load_reference(next(measured(order))["references"]["0"])
    assert np.array_equal(outputs["y"], -np.sort(-inputs["x"])[:, :20])


def test_inputs_have_the_scale_that_is_asked_for() -> None:
    described = inspection(Port("x", "float32", (64, 64)), Port("q", "int16", (4096,)))
    one, hundred = (seeded_inputs(described, 3, scale=scale) for scale in (1.0, 100.0))
    assert np.allclose(hundred["x"], 100 * one["x"])
    assert hundred["x"].dtype == np.float32
    assert one["q"].min() < -30_000 < 30_000 < one["q"].max()
