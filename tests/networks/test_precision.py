"""Numbers are named, and those that nobody here computes with are refused at upload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.zoo import ZOO, constant, half, model_of, quantised, tiny
from workers.networks import quantized_operators
from workers.networks.check import load
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect_model
from workers.networks.precision import INTEGER_OPERATORS, how_computed, multiplies_computed_integers
from workers.networks.rewriting import with_sizes
from workers.networks.tolerance import HALF, QUANTISED, ROUNDED, SINGLE, STEPS, Tolerance, tolerances


def test_precisions_are_named(zoo_cache: Path) -> None:
    named = {
        tiny(zoo_cache): "float32",
        half(zoo_cache, "tiny"): "float16",
        half(zoo_cache, "tiny", "float32"): "float16",
        quantised(zoo_cache, "tiny"): "quantised (QDQ)",
        quantised(zoo_cache, "tiny", "QOperator"): "quantised (integer operators)",
        quantised(zoo_cache, "tiny", "dynamic"): "quantised at run time",
    }
    for path, name in named.items():
        assert inspect_model(load(path)).precision == inspect_model(load(path)).to_json()["precision"] == name
        assert bool(how_computed(onnx.load(path))) == (name != "float32")


def test_integer_convolutions_count_as_work(zoo_cache: Path) -> None:
    wanted = inspect_model(load(tiny(zoo_cache))).work["Conv"]
    assert inspect_model(load(quantised(zoo_cache, "tiny"))).work["Conv"] == wanted
    assert inspect_model(load(quantised(zoo_cache, "tiny", "QOperator"))).work["QLinearConv"] == wanted
    assert inspect_model(load(quantised(zoo_cache, "tiny", "dynamic"))).work["ConvInteger"] == wanted


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
def test_numbers_that_nobody_computes_with_are_refused(kind: int) -> None:
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, [])
    model.graph.input[0].type.tensor_type.elem_type = kind
    with pytest.raises(NetworkError, match=rf"x: {TensorProto.DataType.Name(kind).lower()}: .*; export the network in"):
        inspect_model(model)


def test_so_are_they_inside_a_network() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    with pytest.raises(NetworkError, match="b: bfloat16"):
        inspect_model(model_of(nodes, {"x": [2]}, {"y": [2]}, []))


def test_text_is_told_to_stay_outside() -> None:
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, [])
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    with pytest.raises(
        NetworkError, match=r"x: string: .* text cannot be tuned.*; export the network behind its tokeniser"
    ):
        inspect_model(model)


def test_weights_of_four_bits_may_be_moved_before_they_are_dequantised() -> None:
    import ml_dtypes

    nodes = [
        helper.make_node("Transpose", ["w"], ["t"]),
        helper.make_node("DequantizeLinear", ["t", "s"], ["r"]),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    weights = [constant("w", np.ones((3, 8), ml_dtypes.int4)), constant("s", np.float32(0.1))]
    assert inspect_model(model_of(nodes, {"x": [4, 8]}, {"y": [4, 3]}, weights, 21)).precision == "float32"


def test_a_quantised_network_of_an_old_operator_set_is_taken() -> None:
    model = model_of([helper.make_node("QuantizeLinear", ["x", "s"], ["y"])], {"x": [2]}, {"y": [2]}, [])
    model.graph.initializer.append(constant("s", np.float32(1)))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    model.opset_import[0].version = 10
    assert inspect_model(model).precision == "quantised (QDQ)"


def test_every_integer_operator_that_is_let_in_has_a_rule() -> None:
    tables = (
        quantized_operators._ONE, quantized_operators._TWO, quantized_operators._WITH_BIAS, quantized_operators._INTEGER,
    )  # fmt: skip
    assert {kind for table in tables for kind in table} | {"QLinearConcat"} == INTEGER_OPERATORS


def test_tolerances_follow_the_numbers(zoo_cache: Path) -> None:
    assert tolerances(onnx.load(tiny(zoo_cache))) == {"y": SINGLE}
    assert tolerances(onnx.load(half(zoo_cache, "tiny"))) == {"y": HALF}
    model = onnx.load(quantised(zoo_cache, "tiny"))
    (found,) = tolerances(model).values()
    step = {tensor.name: tensor for tensor in model.graph.initializer}["y_scale"]
    assert found.step == pytest.approx(float(onnx.numpy_helper.to_array(step)))
    model.graph.node.append(helper.make_node("Softmax", ["y"], ["p"]))
    model.graph.output[0].name = "p"
    behind = tolerances(model)["p"]
    assert (behind.step, behind.steps, behind.logarithms) == (found.step, found.steps + 1, True)
    assert behind.relative == pytest.approx(np.expm1(4 * found.step))
    model.graph.node[-1].op_type = "Sigmoid"
    assert tolerances(model) == {"p": QUANTISED}


def of(nodes: list[onnx.NodeProto], weights: list[TensorProto], kind: int = TensorProto.FLOAT) -> Tolerance:
    """Of the only output, of this element type."""
    model = model_of(nodes, {"x": [4, 8]}, {"y": [4, 8]}, weights)
    model.graph.output[0].type.tensor_type.elem_type = kind
    return tolerances(model)["y"]


def test_halves_that_nothing_computes_with_allow_no_more() -> None:
    half, single = TensorProto.FLOAT16, TensorProto.FLOAT
    weights = [constant("w", np.eye(8, dtype=np.float16))]
    widened = helper.make_node("Cast", ["w"], ["v"], to=single)
    assert of([widened, helper.make_node("MatMul", ["x", "v"], ["y"])], weights) == SINGLE
    narrowed = [helper.make_node("MatMul", ["x", "v"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=half)]
    assert of([widened, *narrowed], weights, half) == ROUNDED
    between = helper.make_node("Cast", ["x"], ["h"], to=half)
    assert of([between, helper.make_node("Cast", ["h"], ["y"], to=single)], []) == HALF
    computed = [
        between,
        helper.make_node("MatMul", ["h", "w"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=single),
    ]
    assert of(computed, weights) == HALF


def test_weights_that_alone_are_quantised_allow_no_more() -> None:
    weights = [constant("w", np.eye(8, dtype=np.int8)), constant("s", np.float32(0.1))]
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["v"]), helper.make_node("MatMul", ["x", "v"], ["y"])]
    assert of(nodes, weights) == SINGLE
    model = model_of(nodes, {"x": [4, 8]}, {"y": [4, 8]}, weights)
    assert inspect_model(model).precision == "float32"
    assert how_computed(model) == []


@pytest.mark.parametrize("layers", [1, 4, 5, 24])
def test_roundings_in_a_row_whose_scales_move_add_up(layers: int) -> None:
    """Each of two branches: the longer counts, once."""
    nodes: list[onnx.NodeProto] = []
    weights = [constant("w", np.eye(8, dtype=np.int8)), constant("one", np.float32(0.1))]
    name = "x"
    for layer in range(layers):
        made = [f"{what}{layer}" for what in ("q", "s", "z")]
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [name], made),
            helper.make_node("MatMulInteger", [made[0], "w", made[2]], [f"i{layer}"]),
            helper.make_node("Cast", [f"i{layer}"], [f"f{layer}"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"f{layer}", made[1]], [f"r{layer}"]),
        ]
        name = f"r{layer}"
    found = of([*nodes, helper.make_node("Add", [name, "r0"], ["y"])], weights)
    assert found.relative == pytest.approx(max(STEPS, np.sqrt(2 * layers)) / 255)
    assert ("in a row" in found.reason) == (layers > 4)


def pairs(*behind: onnx.NodeProto, axis: int = 1, scales: int = 8) -> tuple[list[onnx.NodeProto], list[TensorProto]]:
    """x quantised and back, as r."""
    sizes = np.linspace(0.1, 0.8, scales, dtype=np.float32)
    weights = [constant("s", sizes), constant("z", np.zeros(scales, np.int8))]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"], axis=axis),
    ]
    return [*nodes, *behind], weights


def test_each_channel_has_its_step_where_it_stays_a_channel() -> None:
    nodes, weights = pairs()
    nodes[-1].output[0] = "y"
    found = of(nodes, weights)
    assert found.step == pytest.approx(np.linspace(0.1, 0.8, 8))
    assert found.axis == 1
    assert np.allclose(found.sizes((4, 8)), np.linspace(0.1, 0.8, 8).reshape(1, 8))
    moved = of(*pairs(helper.make_node("Transpose", ["r"], ["y"])))
    assert moved.step == pytest.approx(0.8)


def test_rows_are_ranked_behind_a_topk_alone() -> None:
    nodes = [
        helper.make_node("TopK", ["scores", "k"], ["best", "places"]),
        helper.make_node("Gather", ["boxes", "places"], ["found"], axis=1),
        helper.make_node("ReduceSum", ["found"], ["sum"], keepdims=0),
        helper.make_node("Relu", ["boxes"], ["plain"]),
    ]
    inputs = {"scores": [900], "boxes": [4, 900]}
    outputs = {"found": [4, 300], "best": [300], "sum": [], "plain": [4, 900]}
    found = tolerances(model_of(nodes, inputs, outputs, [constant("k", np.array([300]))]))
    assert {name: one.ranked for name, one in found.items()} == {"found": 1, "best": None, "sum": None, "plain": None}
    open_ = model_of(
        nodes, {"scores": ["n"], "boxes": [4, "n"]}, dict.fromkeys(outputs), [constant("k", np.array([300]))]
    )
    with_sizes(open_, inputs)
    assert {name: one.ranked for name, one in tolerances(open_).items()} == {
        name: one.ranked for name, one in found.items()
    }


@pytest.mark.parametrize(("places", "size", "ranked"), [(2, 2, None), (8, 8, 1), (8, 9, None), (16, 16, 1)])
def test_neither_a_batch_nor_a_gate_of_two_experts_is_ranked(places: int, size: int, ranked: int | None) -> None:
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["best", "chosen"]),
        helper.make_node("Cast", ["chosen"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["real", "w"], ["y"]),
    ]
    weights = [constant("k", np.array([places])), constant("w", np.ones((places, size), np.float32))]
    (found,) = tolerances(model_of(nodes, {"x": [8, 100]}, {"y": [8, size]}, weights)).values()
    assert found.ranked == ranked


def test_integers_are_measurements_only_behind_a_quantisation() -> None:
    nodes, weights = pairs()
    nodes[0].output[0] = "y"
    stored = of(nodes[:1], weights, TensorProto.INT8)
    assert (stored.step, stored.labels) == (1.0, False)
    largest = helper.make_node("ArgMax", ["r"], ["y"], axis=1)
    labels = of(*pairs(largest), TensorProto.INT64)
    assert (labels.labels, labels.step, labels.share) == (True, 0.0, 0.05)
    plain = of([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], [], TensorProto.INT64)
    assert (plain.labels, plain.share) == (True, 1e-3)
    cast = of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.UINT8)], [], TensorProto.UINT8)
    assert (cast.labels, cast.steps) == (True, 1)
    places = of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT64)], [], TensorProto.INT64)
    assert (places.labels, places.steps) == (True, 1)
    on_their_way = [
        helper.make_node("ArgMax", ["x"], ["i"], axis=1),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["f"], ["y"], to=TensorProto.INT64),
    ]
    assert of(on_their_way, [], TensorProto.INT64).steps == 0
    summed = helper.make_node("MatMulInteger", ["q", "w"], ["y"])
    nodes, weights = pairs(summed, scales=1)
    assert of(nodes, [*weights, constant("w", np.eye(8, dtype=np.int8))], TensorProto.INT32) == QUANTISED


def test_labels_that_leave_as_real_numbers_are_labels() -> None:
    to_real = helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT)
    behind = [to_real, helper.make_node("Identity", ["f"], ["y"])]
    classes = of([helper.make_node("ArgMax", ["x"], ["i"], axis=1), *behind], [])
    assert (classes.labels, classes.relative, classes.share) == (True, 0.0, 1e-3)
    mask = helper.make_node("Greater", ["x", "zero"], ["i"])
    assert of([mask, *behind], [constant("zero", np.float32(0))]).labels
    cut_off = helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT32)
    assert (of([cut_off, *behind], []).labels, of([cut_off, *behind], []).steps) == (True, 1)
    halved = helper.make_node("Cast", ["x"], ["i"], to=TensorProto.FLOAT16)
    assert of([halved, *behind], []) == HALF


@pytest.mark.parametrize(("name", "computed"), [("tiny", False), ("mobilenet_like", False), ("tiny_attention", True)])
def test_products_of_computed_integers_are_an_attention_s(zoo_cache: Path, name: str, computed: bool) -> None:
    """Others are compared with ONNX Runtime's integer kernels, which round as the library does."""
    assert multiplies_computed_integers(load(quantised(zoo_cache, name))) is computed
    assert not multiplies_computed_integers(load(ZOO[name](zoo_cache))), "in real numbers it is no matter"
