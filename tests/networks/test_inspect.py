from __future__ import annotations

import json
import time
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.networks.forms import branched
from tests.zoo import ZOO, constant, model_of, squeezenet, tiny, tiny_residual
from workers.networks.check import load
from workers.networks.errors import NetworkError
from workers.networks.examples import example
from workers.networks.inspect import DynamicDimension, Port, inspect_model
from workers.networks.shape import shape_of
from workers.networks.shapes import set_static_shapes, tensor_shapes


def test_squeezenet_is_described_quickly_and_as_json(zoo_cache: Path) -> None:
    path = squeezenet(zoo_cache)
    began = time.process_time()
    found = inspect_model(load(path))
    assert time.process_time() - began < 1.0
    assert found.inputs == (Port("data_0", "float32", (1, 3, 224, 224)),)
    assert [port.shape for port in found.outputs] == [(1, 1000, 1, 1)]
    assert found.operators["Conv"] == 26
    assert found.parameters == 1_235_496
    assert found.parameter_bytes == 4 * 1_235_496
    assert found.flops == pytest.approx(0.698e9, rel=0.01)
    assert found.opset == 9
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["inputs"][0]["shape"] == [1, 3, 224, 224]


def test_work_of_a_tiny_network_is_counted_exactly(zoo_cache: Path) -> None:
    found = inspect_model(load(tiny(zoo_cache)))
    assert found.flops == 2 * 16 * 14 * 14 * 16 * 9 + 2 * 784 * 10
    assert found.parameters == 16 * 16 * 9 + 16 + 7840 + 10
    assert not found.dynamic


def test_weights_written_as_a_shape_count_as_parameters(zoo_cache: Path) -> None:
    import onnx

    light = Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx"
    assert inspect_model(load(light)).parameters == inspect_model(example("squeezenet")).parameters


def test_dynamic_dimensions_are_listed_and_set(zoo_cache: Path) -> None:
    model = load(tiny_residual(zoo_cache))
    found = inspect_model(model)
    assert found.dynamic == (DynamicDimension("x", 0, "N"),)
    set_static_shapes(model, {"x": [4, 16, 14, 14]})
    assert not inspect_model(model).dynamic
    assert shape_of(model.graph.output[0]).dims == (4, 16, 14, 14)
    assert inspect_model(model).flops == 4 * found.flops


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({}, r"dimension 0 of x \(N\)"),
        ({"x": [2, 16, 15, 14]}, "dimension 2 of x = 15: the network has 14"),
        ({"x": [2, 16, 14]}, "declares 4 dimensions"),
        ({"x": [0, 16, 14, 14]}, "0 is not a size"),
        ({"x": [10**7, 16, 14, 14]}, "elements"),
        ({"z": [1]}, "no input of this name"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_by_name(zoo_cache: Path, shapes: dict[str, list[int]], words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        set_static_shapes(load(tiny_residual(zoo_cache)), shapes)


def test_what_branches_make_has_a_size_that_nobody_wrote_down() -> None:
    assert tensor_shapes(branched("Neg", [2, 3], None))["y"].static == (2, 3)


def test_the_side_of_a_square_that_a_root_tells_is_known() -> None:
    """As PyTorch's older exporter writes the patches of a picture."""
    nodes = [
        helper.make_node("Shape", ["x"], ["patches"], start=1, end=2),
        helper.make_node("Cast", ["patches"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Pow", ["real", "half"], ["root"]),
        helper.make_node("Cast", ["root"], ["side"], to=TensorProto.INT64),
        helper.make_node("Concat", ["one", "side", "side", "last"], ["sizes"], axis=0),
        helper.make_node("Reshape", ["x", "sizes"], ["y"]),
    ]
    weights = [constant("half", np.float32(0.5)), constant("one", np.asarray([1])), constant("last", np.asarray([8]))]
    assert tensor_shapes(model_of(nodes, {"x": [1, 49, 8]}, {"y": None}, weights))["y"].static == (1, 7, 7, 8)


def test_a_sum_that_is_normalised_has_a_size_too() -> None:
    node = helper.make_node("SkipLayerNormalization", ["x", "x", "g"], ["n", "", "", "y"], domain="com.microsoft")
    model = model_of([node], {"x": [2, 3, 8]}, {"n": None, "y": None}, [constant("g", np.ones(8, np.float32))])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert [tensor_shapes(model)[name].static for name in "ny"] == [(2, 3, 8)] * 2


def test_an_input_without_elements_is_refused_at_once() -> None:
    """A decoder that was traced with an empty past: nobody could give another size, and every run would fail."""
    join = helper.make_node("Concat", ["past", "x"], ["y"], axis=2)
    model = model_of([join], {"past": [1, 2, 0, 4], "x": [1, 2, 3, 4]}, {"y": [1, 2, 3, 4]}, [])
    with pytest.raises(NetworkError, match=r"input past \[1, 2, 0, 4\]: it has a size of 0"):
        inspect_model(model)


def test_a_size_of_minus_one_is_one_that_is_given_later() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [-1, 3]}, {"y": [-1, 3]}, [])
    assert [port.shape for port in inspect_model(model).inputs] == [(None, 3)]
    set_static_shapes(model, {"x": [2, 3]})
    assert shape_of(model.graph.input[0]).dims == (2, 3)


def test_one_symbol_is_one_number() -> None:
    model = model_of([helper.make_node("Add", ["a", "b"], ["y"])], {"a": ["N", 2], "b": ["N", 2]}, {"y": ["N", 2]}, [])
    with pytest.raises(NetworkError, match="dimension 0 of b = 4: the network has 3"):
        set_static_shapes(deepcopy(model), {"a": [3, 2], "b": [4, 2]})
    set_static_shapes(model, {"a": [3, 2]})
    assert [shape_of(value).dims for value in model.graph.input] == [(3, 2), (3, 2)]


@pytest.mark.parametrize(("inputs", "taken"), [(128, True), (129, False)])
def test_more_open_sizes_than_networks_have_are_refused(inputs: int, taken: bool) -> None:
    given = {f"x{i}": ["N", "N", "N", "N"] for i in range(inputs)}
    model = model_of([helper.make_node("Sum", [*given], ["y"])], given, {"y": ["N", "N", "N", "N"]}, [])
    if taken:
        assert len(inspect_model(model).dynamic) == 4 * inputs
    else:
        with pytest.raises(NetworkError, match="516: so many sizes of inputs are left open; 512 is the limit"):
            inspect_model(model)


@pytest.mark.parametrize(
    "name",
    ["mobilenet_like", "resnet18", "transformer_encoder", "resnet50", "densenet121", "inception_v1", "shufflenet"],
)
def test_every_network_of_the_zoo_passes_in_a_second(zoo_cache: Path, name: str) -> None:
    path = ZOO[name](zoo_cache)
    began = time.process_time()
    load(path)
    assert time.process_time() - began < 1.0


def test_more_inputs_and_outputs_than_a_form_can_ask_for_are_refused() -> None:
    names = [f"x{i}" for i in range(256)]
    model = model_of([helper.make_node("Sum", names, ["y"])], {name: [1] for name in names}, {"y": [1]}, [])
    with pytest.raises(NetworkError, match=r"257: .*256 is the limit"):
        inspect_model(model)
    model = model_of([helper.make_node("Sum", names[1:], ["y"])], {name: [1] for name in names[1:]}, {"y": [1]}, [])
    assert len(inspect_model(model).inputs) == 255
