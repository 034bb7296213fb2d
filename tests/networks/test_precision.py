"""Numbers are named, and those that nobody here computes with are refused at upload."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.zoo import constant, half, model_of, quantised, tiny
from workers.networks import quantized_operators
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect, inspect_model
from workers.networks.precision import INTEGER_OPERATORS, how_computed
from workers.networks.tolerance import HALF, QUANTISED, SINGLE, tolerances


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
        assert inspect(path).precision == inspect(path).to_json()["precision"] == name
        assert bool(how_computed(onnx.load(path))) == (name != "float32")


def test_integer_convolutions_count_as_work(zoo_cache: Path) -> None:
    wanted = inspect(tiny(zoo_cache)).work["Conv"]
    assert inspect(quantised(zoo_cache, "tiny")).work["Conv"] == wanted
    assert inspect(quantised(zoo_cache, "tiny", "QOperator")).work["QLinearConv"] == wanted
    assert inspect(quantised(zoo_cache, "tiny", "dynamic")).work["ConvInteger"] == wanted


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.STRING, TensorProto.INT4])
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


def test_a_quantised_network_of_an_old_operator_set_is_refused() -> None:
    model = model_of([helper.make_node("QuantizeLinear", ["x", "s"], ["y"])], {"x": [2]}, {"y": [2]}, [])
    model.graph.initializer.append(constant("s", np.float32(1)))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    assert inspect_model(model).precision == "quantised (QDQ)"
    model.opset_import[0].version = 10
    with pytest.raises(NetworkError, match=r"opset 10: .*operator set 11"):
        inspect_model(model)


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
    assert tolerances(model)["p"].relative == pytest.approx(np.expm1(4 * found.step))
    model.graph.node[-1].op_type = "Sigmoid"
    assert tolerances(model) == {"p": QUANTISED}
