"""float16 networks are computed in float32 between float16 borders."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from tests.zoo import constant, half, model_of
from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.baselines.verify import compare
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.halves import halves_to_singles
from workers.networks.inspect import inspect_model
from workers.networks.shapes import tensor_shapes
from workers.networks.tolerance import HALF, tolerances


def failing(model: ModelProto) -> ModelProto:
    raise RuntimeError("left out")


def outputs(model: ModelProto, seed: int = 0) -> dict[str, NDArray[Any]]:
    return OnnxRuntimeSession(model.SerializeToString(), 1).run(seeded_inputs(inspect_model(model), seed))


@pytest.mark.parametrize("borders", ["float16", "float32"])
@pytest.mark.parametrize("name", ["tiny", "tiny_attention", "mobilenet_like", "squeezenet"])
def test_only_the_borders_stay_halves(zoo_cache: Path, name: str, borders: str) -> None:
    model = load(half(zoo_cache, name, borders))
    assert inspect_model(model).precision == "float16"
    result, _ = clean(deepcopy(model), {})
    onnx.checker.check_model(result)
    ports = {value.type.tensor_type.elem_type for value in (*result.graph.input, *result.graph.output)}
    assert ports == {TensorProto.FLOAT16 if borders == "float16" else TensorProto.FLOAT}
    named = {value.name for value in (*result.graph.input, *result.graph.output)}
    assert not [
        name for name, s in tensor_shapes(result).items() if s.dtype == TensorProto.FLOAT16 and name not in named
    ]
    assert sum(node.op_type == "Cast" for node in result.graph.node) == (2 if borders == "float16" else 0)
    found = compare(outputs(result), outputs(model), tolerances(model))
    assert found.passed, found.reason
    assert found.outputs[0].tolerance == HALF


def test_a_float32_network_is_left_alone() -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": [2]}, [])
    before = model.SerializeToString()
    assert halves_to_singles(model) is None
    assert model.SerializeToString() == before


def test_an_output_that_is_read_on_and_constants_of_operators_are_widened_too() -> None:
    nodes = [
        helper.make_node("Constant", [], ["c"], value=constant("", np.float16([0.5, 2]))),
        helper.make_node("Mul", ["x", "c"], ["y"]),
        helper.make_node("Cast", ["y"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Exp", ["wide"], ["e"]),
        helper.make_node("Cast", ["e"], ["z"], to=TensorProto.FLOAT16),
    ]
    model = model_of(nodes, {"x": [2]}, {"y": [2], "z": [2]}, [])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    result, _ = clean(deepcopy(model), {})
    assert compare(outputs(result), outputs(model), tolerances(model)).passed
    assert {value.type.tensor_type.elem_type for value in result.graph.output} == {TensorProto.FLOAT16}


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize("kind", ["weight", "operator"])
def test_a_constant_and_an_input_may_be_outputs(kind: str, simplifier: Any) -> None:
    values = constant("w", np.float16([0.5, 2]))
    nodes = [helper.make_node("Constant", [], ["w"], value=values)] if kind == "operator" else []
    nodes.append(helper.make_node("Mul", ["x", "w"], ["y"]))
    model = model_of(nodes, {"x": [2]}, {"y": [2], "w": [2], "x": [2]}, [values] if kind == "weight" else [])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    result, _ = clean(deepcopy(model), {}, simplifier)
    onnx.checker.check_model(result)
    assert [value.name for value in result.graph.output] == ["y", "w", "x"]
    assert compare(outputs(result), outputs(model), tolerances(model)).passed


@pytest.mark.mutation
@pytest.mark.parametrize("broken", ["axis", "scale"])
def test_a_swapped_axis_and_a_dropped_scale_are_noticed(zoo_cache: Path, broken: str) -> None:
    model = load(half(zoo_cache, "tiny"))
    result, _ = clean(deepcopy(model), {})
    for tensor in result.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if broken == "axis" and values.ndim == 4:
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(values.swapaxes(2, 3)), tensor.name))
        if broken == "scale" and values.shape == (16,):
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.zeros_like(values), tensor.name))
    assert not compare(outputs(result), outputs(model), tolerances(model)).passed
