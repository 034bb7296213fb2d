"""Operators in forms that TVM does not read are written in others that compute the same."""

from __future__ import annotations

import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tests.networks import forms
from tests.networks.forms import BATCH, READ, WIDTH
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.baselines.inputs import seeded_inputs
from workers.networks import activations, opsets, pads
from workers.networks.check import load
from workers.networks.clean import BROUGHT, clean
from workers.networks.early import set_aside
from workers.networks.errors import NetworkError
from workers.networks.graph import attribute, operator_types
from workers.networks.inspect import inspect_model
from workers.networks.recurrent import STEPS
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset
from workers.networks.transforms import transforms_to_products
from workers.networks.unfixed import refuse_unfixed_inputs
from workers.networks.vocabulary import vocabularies

GONE = set("Upsample LSTM GRU RNN Celu Attention Swish LpNormalization MeanVarianceNormalization Gelu".split())


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize("name", list(forms.FORMS))
def test_every_form_computes_the_same_when_it_is_cleaned(name: str, simplifier: Any) -> None:
    model = forms.FORMS[name]()
    result, _ = clean(deepcopy(model), {}, simplifier)
    assert same(outputs(model), outputs(result))
    onnx.checker.check_model(set_aside(result), full_check=True)
    assert opset(result) >= 13
    assert not operator_types(result) & GONE
    for node in result.graph.node:
        assert attribute(node, "auto_pad", b"NOTSET") == b"NOTSET"
        assert attribute(node, "output_shape") is None
    assert not [tensor.name for tensor in result.graph.initializer if 0 in tensor.dims]


def test_an_older_operator_set_is_told_and_large_weights_stay_where_they_are() -> None:
    weights = constant("w", forms.drawn(64, 64))
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [1, 64]}, {"y": [1, 64]}, [weights], 9)
    held = model.graph.initializer[0]
    assert opsets.raise_opset(model) == "operator set 9 was raised to 13"
    assert [tensor.name for tensor in model.graph.initializer] == ["w"]
    assert model.graph.initializer[0] is held
    assert opsets.raise_opset(model) is None


@pytest.mark.parametrize("version", [9, 16])
def test_a_layer_normalisation_of_an_operator_set_that_has_none_is_loaded_with_its_size(
    version: int, tmp_path: Path
) -> None:
    path = tmp_path / "network.onnx"
    path.write_bytes(forms.early(version).SerializeToString())
    loaded = load(path)
    assert next((node.domain, node.op_type) for node in loaded.graph.node) == ("", "LayerNormalization")
    assert tensor_shapes(loaded)["n"].static == (2, 4, 6)
    assert [node.domain for node in clean(loaded, {}, failing)[0].graph.node].count("") == len(loaded.graph.node)


def test_what_is_unknown_beside_an_early_layer_normalisation_is_blamed_alone(tmp_path: Path) -> None:
    model = forms.early(13)
    model.graph.node[1].op_type = "Unheard"
    path = tmp_path / "network.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(NetworkError, match="it uses Unheard, which is not an ONNX operator of opset 13"):
        load(path)


def test_a_network_that_cannot_be_raised_keeps_its_operator_set_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(model: ModelProto, version: int) -> ModelProto:
        raise RuntimeError("no adapter")

    monkeypatch.setattr(opsets.version_converter, "convert_version", refusing)
    model = forms.OLD["Slice-9"]()
    result, report = clean(deepcopy(model), {}, failing)
    assert opset(result) == 9
    assert "operator set 9 was kept: raising it to 13 failed (no adapter)" in report
    assert same(outputs(model), outputs(result))


def test_what_a_constant_of_more_axes_is_compared_with_keeps_them() -> None:
    """Of nothing but infinities TVM would say otherwise; of others it is the same."""
    node = [
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0),
        helper.make_node("Equal", ["m", "e"], ["q"]),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    end = constant("e", np.full((1, 1, 1), -np.inf, np.float32))
    result, report = clean(model_of(node, {"x": [2, 3]}, {"y": None}, [end]), {}, failing)
    assert not [sentence for sentence in report if "number by number" in sentence]
    assert outputs(result)[0].shape == (1, 1, 2)


@pytest.mark.parametrize("kind", ["LpNormalization", "Attention"])
def test_a_simplifier_that_brings_in_what_cannot_be_imported_is_not_used(kind: str) -> None:
    def odd(model: ModelProto) -> ModelProto:
        result = deepcopy(model)
        result.graph.node[-1].op_type = kind
        return result

    assert kind not in BROUGHT
    model = forms.normalised()
    result, report = clean(deepcopy(model), {}, odd)
    assert (
        f"the ONNX simplifier was not used (it brought in {kind}); the own passes alone cleaned the network" in report
    )
    assert same(outputs(model), outputs(result))


def test_a_size_that_a_transposed_convolution_cannot_reach_is_refused_by_name() -> None:
    model = forms.one("ConvTranspose", forms.IMAGE, 17, forms.drawn(4, 8, 3, 3), strides=[2, 2], output_shape=[30, 18])
    with pytest.raises(NetworkError, match=r"output_shape \[30, 18\] of the one: .*\[15, 19\] at most"):
        pads.explicit_pads(model)


WINDOWS = {
    "Conv": {"kernel_shape": [3, 3]},
    "MaxPool": {"kernel_shape": [2, 2], "dilations": [2, 2]},
    "AveragePool": {"kernel_shape": [4, 4], "pads": [1, 0, 0, 1]},
}
"""Each is 3 or 4 wide, over an image of 2 x 2."""


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("sizes", [[1, 4, 2, 2], ["N", 4, "H", "W"]], ids=["told", "chosen"])
def test_a_window_that_is_wider_than_what_it_goes_over_is_refused_by_its_sizes(kind: str, sizes: list[Any]) -> None:
    weights = [forms.drawn(4, 4, 3, 3)] if kind == "Conv" else []
    model = forms.one(kind, sizes, 17, *weights, **WINDOWS[kind])
    with pytest.raises(
        NetworkError, match=r"its window of \d x \d is wider than the \d x \d that it goes over.*larger sizes"
    ):
        clean(model, {"x": [1, 4, 2, 2]})


def test_a_window_that_fits_with_its_padding_is_none_of_these() -> None:
    clean(forms.one("Conv", [1, 4, 1, 1], 17, forms.drawn(4, 4, 3, 3), pads=[1, 1, 1, 1]), {})
    clean(forms.one("MaxPool", [1, 4, 1, 1], 17, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), {})


@pytest.mark.mutation
def test_pads_on_the_wrong_side_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = forms.PADDED["Conv SAME_LOWER"]()
    monkeypatch.setattr(
        pads,
        "attribute",
        lambda node, name, default=None: b"SAME_UPPER" if name == "auto_pad" else attribute(node, name, default),
    )
    result, _ = clean(deepcopy(model), {}, failing)
    assert not same(outputs(model), outputs(result))


@pytest.mark.parametrize(
    "model",
    [
        forms.recurrent("LSTM", steps=STEPS + 1),
        forms.recurrent("LSTM", clip=1.0),
        forms.recurrent("RNN", activations=["Sigmoid"]),
    ],
    ids=["long", "clipped", "other activations"],
)
def test_recurrent_operators_out_of_the_ordinary_stay(model: ModelProto) -> None:
    result, report = clean(deepcopy(model), {}, failing)
    assert operator_types(result) & {"LSTM", "RNN"}
    assert not [sentence for sentence in report if "step by step" in sentence]
    assert same(outputs(model), outputs(result))


def test_a_channel_of_zeros_is_normalised_to_zeros() -> None:
    """As ONNX defines it; ONNX Runtime divides by nothing too."""
    nodes = [helper.make_node("Mul", ["x", "m"], ["z"]), helper.make_node("MeanVarianceNormalization", ["z"], ["y"])]
    zero = constant("m", forms.floats(1, 0, 1).reshape(3, 1, 1))
    model = model_of(nodes, {"x": [2, 3, 4, 5]}, {"y": [2, 3, 4, 5]}, [zero])
    result, report = clean(deepcopy(model), {}, failing)
    assert "1 normalisation was written by its definition" in report
    assert not outputs(result)[0][:, 1].any()
    assert same(ReferenceEvaluator(model).run(None, seeded_inputs(inspect_model(model), 0)), outputs(result))


def test_a_normalisation_whose_scale_is_told_when_it_runs_gets_the_inputs_that_it_lacks() -> None:
    node = helper.make_node("SkipLayerNormalization", ["x", "token", "gamma"], ["y"], domain="com.microsoft")
    model = model_of([node], {"x": [2, 5, 8], "token": [2, 5, 8], "gamma": [8]}, {"y": [2, 5, 8]}, [])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    result, report = clean(deepcopy(model), {}, failing)
    assert "1 normalisation was written with all its inputs" in report
    assert len([name for name in result.graph.node[0].input if name]) == 5
    assert same(outputs(model), outputs(result))


def test_gates_of_dequantised_weights_may_be_put_into_another_order() -> None:
    """As exporters of PyTorch do, which has an order of its own."""
    model, stored = forms.recurrent("LSTM"), np.random.default_rng(0).integers(-127, 128, (1, 4 * WIDTH, READ))
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
        helper.make_node("Slice", ["d", "half", "end", "axis"], ["last"]),
        helper.make_node("Slice", ["d", "none", "half", "axis"], ["first"]),
        helper.make_node("Concat", ["last", "first"], ["w"], axis=1),
        *model.graph.node,
    ]
    places = {"none": 0, "half": 2 * WIDTH, "end": 4 * WIDTH, "axis": 1}
    weights = [constant(name, forms.integers(place)) for name, place in places.items()]
    weights += [constant("q", stored.astype(np.int8)), constant("s", np.float32(0.004)), *model.graph.initializer[1:]]
    model = model_of(nodes, {"x": [forms.STEPS, BATCH, READ]}, {"y": None}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    assert "LSTM" not in operator_types(result)
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("LRN", [forms.drawn(2, 6, 4, 4)], {"size": 3, "alpha": 9.0}),
        ("ConvTranspose", [forms.drawn(1, 4, 3, 3), forms.drawn(4, 1, 2, 2), forms.drawn(4)], {"group": 4}),
        ("GatherElements", [forms.drawn(100, 1), forms.integers(*[0] * 100)[:, None]], {"axis": 0}),
    ],
    ids=["LRN", "ConvTranspose", "GatherElements"],
)
def test_what_onnx_evaluates_otherwise_of_constants_stays(kind: str, inputs: Any, attributes: Any) -> None:
    names = [f"w{place}" for place in range(len(inputs))]
    nodes = [helper.make_node(kind, names, ["c"], **attributes), helper.make_node("Mul", ["x", "c"], ["y"])]
    weights = [constant(name, values) for name, values in zip(names, inputs, strict=True)]
    model = model_of(nodes, {"x": [1]}, {"y": None}, weights)
    result, _ = clean(deepcopy(model), {}, failing)
    assert kind in operator_types(result)
    assert same(outputs(model), outputs(result))


def test_local_functions_are_written_out_in_a_process_that_has_loaded_nothing_else(tmp_path: Path) -> None:
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    model = model_of([helper.make_node("Twice", ["x"], ["y"], domain="local")], {"x": [2]}, {"y": [2]}, [])
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    path = tmp_path / "network.onnx"
    path.write_bytes(model.SerializeToString())
    code = (
        "import sys; from workers.networks.check import load; from workers.networks.clean import clean; "
        "result, _ = clean(load(sys.argv[1]), {}, lambda same: same); print(*[node.op_type for node in result.graph.node])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True, timeout=60
    )
    assert said.stdout.split() == ["Add"]


@pytest.mark.parametrize("flattens", [True, False])
def test_a_simplifier_that_changes_the_sizes_of_an_output_is_not_used(flattens: bool) -> None:
    def flattening(model: ModelProto) -> ModelProto:
        changed = deepcopy(model)
        nodes = [helper.make_node("Flatten", ["x"], ["y"])] if flattens else list(model.graph.node)
        del changed.graph.node[:]
        changed.graph.node.extend(nodes)
        return changed

    relu = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 2, 4]}, {"y": None}, [])
    del relu.graph.output[0].type.tensor_type.shape.dim[:]
    _, report = clean(relu, {}, flattening)
    assert any("it changed the sizes of y" in line for line in report) == flattens


def test_what_functions_hold_is_judged_as_if_it_stood_outside(tmp_path: Path) -> None:
    """As PyTorch's exporter leaves it: an embedding's rows, a product's work."""
    inside = [helper.make_node("Gather", ["t", "i"], ["e"]), helper.make_node("MatMul", ["e", "w"], ["o"])]
    weights = [constant("t", forms.drawn(50, 8)), constant("w", forms.drawn(8, 4))]
    calls = [helper.make_node("Embedded", ["t", "x", "w"], ["y"], domain="local")]
    plain = [
        helper.make_node(node.op_type, *names)
        for node, names in zip(inside, ((["t", "x"], ["e"]), (["e", "w"], ["y"])), strict=True)
    ]
    models = [model_of(nodes, {"x": [1, 6]}, {"y": [1, 6, 4]}, weights) for nodes in (calls, plain)]
    models[0].functions.append(
        helper.make_function("local", "Embedded", ["t", "i", "w"], ["o"], inside, [helper.make_opsetid("", 17)])
    )
    models[0].opset_import.append(helper.make_opsetid("local", 1))
    told = []
    for number, model in enumerate(models):
        model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
        path = tmp_path / f"{number}.onnx"
        path.write_bytes(model.SerializeToString())
        loaded = load(path)
        told.append((vocabularies(loaded), inspect_model(loaded).flops, operator_types(loaded)))
    assert told[0] == told[1]
    assert told[0][0] == {"x": 50}
    assert told[0][1] > 0


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("kind", ["Slice", "Split"])
def test_parts_of_one_place_are_read_where_they_lie(kind: str, axis: int) -> None:
    result, _ = clean(forms.unbound(kind, axis), {}, failing)
    assert [node.op_type for node in result.graph.node] == ["Gather"] * 3 + ["Mul", "Add"]


@pytest.mark.parametrize("far", [-100.0, -20.0, 0.0, 19.9, 20.1, 90.0])
def test_a_mish_has_no_logarithm_and_is_exact_far_out(far: float) -> None:
    nodes = [
        helper.make_node("Softplus", ["x"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["t", "x"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 9]}, {"y": [1, 9]}, [])
    result, _ = clean(deepcopy(model), {}, failing)
    assert not operator_types(result) & {"Softplus", "Tanh", "Mish"}
    x = (far + np.linspace(-2, 2, 9, dtype=np.float32))[None].astype(np.float32)
    exact = x.astype(np.float64) * np.tanh(np.logaddexp(0, x.astype(np.float64)))
    (found,) = ReferenceEvaluator(result).run(None, {"x": x})
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("far", [-1e38, -100.0, -80.0, -20.0, -1.0, 0.0, 1.0, 20.0, 100.0, 1e38])
def test_a_softplus_has_no_logarithm_and_is_exact_far_out(far: float) -> None:
    """Below -17, too, where a sum of 1 and a small number would leave none."""
    result, report = clean(forms.one("Softplus", [1, 9], 17), {}, failing)
    assert "1 Softplus was written with one exponential" in report
    assert not operator_types(result) & {"Softplus", "Log"}
    x = (far + np.linspace(-2, 2, 9, dtype=np.float32))[None].astype(np.float32)
    (found,) = ReferenceEvaluator(result).run(None, {"x": x})
    np.testing.assert_allclose(found, np.logaddexp(0, x.astype(np.float64)), rtol=1e-6, atol=1e-37)


def test_a_softplus_of_infinities_and_of_no_number_is_what_it_was() -> None:
    result, _ = clean(forms.one("Softplus", [3], 17), {}, failing)
    x = forms.floats(-np.inf, np.inf, np.nan)
    np.testing.assert_array_equal(ReferenceEvaluator(result).run(None, {"x": x})[0], forms.floats(0, np.inf, np.nan))


def test_a_softplus_of_float64_stays() -> None:
    result, _ = clean(forms.as_doubles("Softplus", 17), {}, failing)
    assert "Softplus" in operator_types(result)


@pytest.mark.mutation
def test_a_softplus_of_fewer_terms_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activations, "TERMS", 4)
    with pytest.raises(AssertionError):
        test_a_softplus_has_no_logarithm_and_is_exact_far_out(-1.0)


def in_parts(
    opset: int, square: str = "Pow", affine: int = 2, axes: tuple[int, ...] = (-1,), **changed: Any
) -> ModelProto:
    """A layer normalisation as PyTorch's older exporter writes it, with `affine` of scale and shift."""
    sizes = [2, 5, 6][axes[0] :]
    reduced: dict[str, Any] = {"axes": [*axes]} if opset < 18 else {}
    along = [] if reduced else ["axes"]
    nodes = [
        helper.make_node("ReduceMean", ["x", *along], ["mean"], **reduced, **changed),
        helper.make_node("Sub", ["x", "mean"], ["rest"]),
        helper.make_node(square, ["rest", "two" if square == "Pow" else "rest"], ["squares"]),
        helper.make_node("ReduceMean", ["squares", *along], ["variance"], **reduced, **changed),
        helper.make_node("Add", ["variance", "epsilon"], ["least"]),
        helper.make_node("Sqrt", ["least"], ["deviation"]),
        helper.make_node("Div", ["rest", "deviation"], ["normal"]),
        helper.make_node("Mul", ["scale", "normal"], ["scaled"]),
        helper.make_node("Add", ["scaled", "shift"], ["shifted"]),
        helper.make_node("Neg", [("normal", "scaled", "shifted")[affine]], ["y"]),
    ]
    weights = [
        constant("scale", forms.drawn(*sizes)), constant("shift", forms.drawn(*sizes, seed=1)),
        constant("two", np.float32(2)), constant("epsilon", np.float32(1e-5)), constant("axes", forms.integers(*axes)),
    ]  # fmt: skip
    return model_of(nodes[: 7 + affine] + nodes[-1:], {"x": [2, 5, 6]}, {"y": None}, weights, opset)


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize(
    "model",
    [
        in_parts(13),
        in_parts(18),
        in_parts(13, "Mul"),
        in_parts(13, affine=0),
        in_parts(13, affine=1),
        in_parts(13, axes=(-2, -1)),
    ],
    ids=["attributes", "inputs", "product", "alone", "scaled", "two axes"],
)
def test_a_layer_normalisation_in_parts_is_put_together(model: ModelProto, simplifier: Any) -> None:
    result, _ = clean(deepcopy(model), {}, simplifier)
    assert sorted(node.op_type for node in result.graph.node) == ["LayerNormalization", "Neg"]
    assert same(outputs(model), outputs(result))


def of_other_squares() -> ModelProto:
    """The squares are of what is left without another mean."""
    model = in_parts(13)
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["other"], axes=[-2]),
        helper.make_node("Sub", ["x", "other"], ["left"]),
    ]
    for place, node in enumerate(nodes):
        model.graph.node.insert(place, node)
    next(node for node in model.graph.node if node.op_type == "Pow").input[0] = "left"
    return model


@pytest.mark.parametrize("model", [in_parts(13, axes=(-2,)), in_parts(13, "Add"), of_other_squares()])
def test_what_is_no_layer_normalisation_stays_what_it_is(model: ModelProto) -> None:
    result, _ = clean(deepcopy(model), {}, failing)
    assert "LayerNormalization" not in operator_types(result)
    assert same(outputs(model), outputs(result))


def test_what_is_read_before_it_is_scaled_is_scaled_behind_the_normalisation() -> None:
    model = in_parts(13)
    model.graph.output.append(helper.make_tensor_value_info("normal", TensorProto.FLOAT, [2, 5, 6]))
    result, _ = clean(deepcopy(model), {}, failing)
    assert {"LayerNormalization", "Mul", "Add"} <= operator_types(result)
    assert same(outputs(model), outputs(result))


def test_steps_of_a_sequence_are_not_read_one_by_one() -> None:
    nodes = [helper.make_node("Split", ["x"], [f"p{n}" for n in range(5)], axis=1)]
    nodes += [helper.make_node("Squeeze", [f"p{n}", "axis"], [f"s{n}"]) for n in range(5)]
    nodes += [helper.make_node("Sum", [f"s{n}" for n in range(5)], ["y"])]
    model = model_of(nodes, {"x": [2, 5, 4]}, {"y": None}, [constant("axis", forms.integers(1))], 13)
    result, _ = clean(deepcopy(model), {}, failing)
    assert "Gather" not in operator_types(result)
    assert same(outputs(model), outputs(result))


def layer(*outputs: str) -> ModelProto:
    node = helper.make_node("LayerNormalization", ["x", "w"], ["y", *outputs], name="the one")
    named = {name: None for name in ("y", *filter(None, outputs))}
    return model_of([node], {"x": [2, 6]}, named, [constant("w", forms.drawn(6))])


def dropped(*outputs: str, training: bool = False, ratio: float = 0.5) -> ModelProto:
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", *outputs], name="the one")
    weights = [constant("r", np.float32(ratio)), constant("t", np.asarray(training))]
    return model_of([node], {"x": [2, 6]}, {"y": None, **dict.fromkeys(outputs)}, weights)


def normalised_by_the_batch() -> ModelProto:
    node = helper.make_node("BatchNormalization", ["x", *"sbmv"], ["y", "", ""], name="the one", training_mode=1)
    return model_of([node], {"x": [2, 6]}, {"y": None}, [constant(name, forms.drawn(6)) for name in "sbmv"])


def pooled() -> ModelProto:
    sides = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("MaxPool", ["x"], ["v", "i"], name="the one", **sides),
        helper.make_node("MaxUnpool", ["v", "i"], ["y"], **sides),
    ]
    return model_of(nodes, {"x": [1, 2, 4, 4]}, {"y": None}, [])


def cut() -> ModelProto:
    nodes = [
        helper.make_node("Slice", ["x", "two", "none", "none"], ["s"], name="the one"),
        helper.make_node("ReduceSum", ["s"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    weights = [constant("two", forms.integers(2)), constant("none", forms.integers(0))]
    return model_of(nodes, {"x": [4, 5]}, {"y": None}, weights)


def parted() -> ModelProto:
    nodes = [
        helper.make_node("Split", ["x", "s"], ["a", "b"], axis=1, name="the one"),
        helper.make_node("ReduceSum", ["a"], ["r"]),
        helper.make_node("Add", ["b", "r"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 3]}, {"y": None}, [constant("s", forms.integers(0, 3))])


def sized_by_values() -> ModelProto:
    """What an If that x decides about leaves of x is computed with."""
    model = forms.squeezed_where_one()
    model.graph.node[0].CopyFrom(helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0))
    model.graph.node[1].CopyFrom(helper.make_node("Cast", ["s"], ["d"], to=TensorProto.INT64))
    model.graph.node[3].name = "the one"
    return model


def test_branches_of_several_that_call_their_results_alike_are_told_apart() -> None:
    """Of one size each, and the Ifs of two."""

    def either(result: str, source: str) -> onnx.NodeProto:
        kinds = ([helper.make_node(kind, [source], ["b"])] for kind in ("Relu", "Neg"))
        return helper.make_node("If", ["c"], [result], **forms.branches(*kinds))

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        either("f", "x"), either("g", "z"),
        helper.make_node("ReduceSum", ["g"], ["t"], keepdims=0),
        helper.make_node("Add", ["f", "t"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [2, 3], "z": [5]}, {"y": [2, 3]}, [])
    result, _ = clean(deepcopy(model), {}, failing)
    assert same(outputs(model), outputs(result))


def branching(*operators: onnx.NodeProto, condition: str = "c") -> ModelProto:
    """These, which make b of x, or a Relu, as x decides, or a constant."""
    model = forms.branched("Relu", [2, 3], [2, 3])
    chosen = forms.branches([*operators], [helper.make_node("Relu", ["x"], ["b"])], [2, 3])
    model.graph.node[-1].CopyFrom(helper.make_node("If", [condition], ["y"], name="the one", **chosen))
    model.graph.initializer.extend([constant("yes", np.asarray(True)), constant("front", forms.integers(0, 1))])
    return model


def resized(scale: float, inner: bool = True) -> tuple[onnx.NodeProto, ...]:
    """To the nearest pixels of an axis, whose largest is added; its scales are the branch's own, or are computed there."""
    scales = helper.make_node("Constant", [], ["w"], value=constant("w", forms.floats(1, 1, 1, scale)))
    if not inner:
        scales = helper.make_node("Expand", ["zero", "front"], ["w"])
    return (
        scales,
        helper.make_node("Unsqueeze", ["x", "front"], ["p"]),
        helper.make_node("Resize", ["p", "", "w"], ["q"], mode="nearest"),
        helper.make_node("ReduceMax", ["q"], ["m"], axes=[3]),
        helper.make_node("Squeeze", ["m", "front"], ["n"]),
        helper.make_node("Add", ["x", "n"], ["b"]),
    )


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_nearest_pixels_that_tvm_takes_too_may_be_taken_in_a_branch(scale: float) -> None:
    model = branching(*resized(scale))
    result, _ = clean(deepcopy(model), {}, failing)
    assert operator_types(result) >= {"If", "Resize"}
    assert same(outputs(model), outputs(result))


INFINITE = (
    helper.make_node("IsInf", ["x"], ["i"], detect_negative=0),
    helper.make_node("Cast", ["i"], ["b"], to=TensorProto.FLOAT),
)


def test_a_branch_that_is_always_taken_may_hold_what_is_written_otherwise() -> None:
    model = branching(*INFINITE, condition="yes")
    result, _ = clean(deepcopy(model), {}, failing)
    assert "If" not in operator_types(result)
    assert same(outputs(model), outputs(result))
    assert "If" in operator_types(clean(branching(helper.make_node("Neg", ["x"], ["b"])), {}, failing)[0])


def decided(kind: str, sizes: list[int], *before: onnx.NodeProto, **attributes: Any) -> ModelProto:
    """One operator that reads p, or what `before` makes of it as c."""
    node = helper.make_node(kind, ["x", "c" if before else "p"], ["y"], name="the one", **attributes)
    model = model_of([*before, node], {"x": [2, 6], "p": sizes}, {"y": None}, [constant("one", forms.integers(1))], 18)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    return model


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (layer("m"), "LayerNormalization the one: a mean or a deviation of it is read"),
        (layer("", "d"), "LayerNormalization the one: a mean or a deviation of it is read"),
        (dropped("d"), "Dropout the one: which numbers it drops is read"),
        (dropped(training=True), "Dropout the one: it is in training mode; .* behind model.eval"),
        (normalised_by_the_batch(), "BatchNormalization the one: it is in training mode; .* behind model.eval"),
        (pooled(), "MaxPool the one: the places of its largest numbers are read"),
        (cut(), "Slice the one: nothing is between where it begins and where it ends"),
        (
            forms.one("RoiAlign", forms.IMAGE, 16, forms.floats(0, 0, 4, 4)[None], forms.integers(0), mode="max"),
            "RoiAlign the one: it takes the largest of its samples",
        ),
        (
            forms.whole("ReduceLogSum", TensorProto.INT32, axes=[1]),
            "ReduceLogSum the one: it is a logarithm of whole numbers",
        ),
        (
            forms.whole("ReduceLogSum", TensorProto.INT32, opset=18, noop_with_empty_axes=1),
            "ReduceLogSum the one: it is a logarithm of whole numbers",
        ),
        (
            forms.whole("ReduceLogSumExp", TensorProto.INT64, axes=[1]),
            "ReduceLogSumExp the one: it is a logarithm of whole numbers",
        ),
        (parted(), "Split the one: a part of it has no elements"),
        (sized_by_values(), "If the one: its branches make tensors of different sizes"),
        (
            branching(*INFINITE),
            "If the one: one of its branches holds IsInf, .*; export the network with IsInf outside of",
        ),
        (
            branching(helper.make_node("LpNormalization", ["x"], ["b"])),
            "If the one: one of its branches holds LpNormalization",
        ),
        (
            branching(
                helper.make_node("Constant", [], ["i"], value=constant("i", forms.integers(0, 1)[None])),
                helper.make_node("Constant", [], ["u"], value=constant("u", forms.floats(1, 2)[None])),
                helper.make_node("ScatterElements", ["x", "i", "u"], ["b"], axis=1),
            ),
            "If the one: one of its branches holds ScatterElements",
        ),
        (branching(*resized(1.5)), "If the one: one of its branches holds Resize"),
        (branching(*resized(2, inner=False)), "If the one: one of its branches holds Resize"),
        (
            branching(
                helper.make_node("Constant", [], ["r"], value=constant("r", forms.floats(0, 0, 2, 1)[None])),
                helper.make_node("Constant", [], ["i"], value=constant("i", forms.integers(0))),
                helper.make_node("Unsqueeze", ["x", "front"], ["p"]),
                helper.make_node(
                    "RoiAlign",
                    ["p", "r", "i"],
                    ["q"],
                    name="it",
                    mode="max",
                    output_height=2,
                    output_width=3,
                    spatial_scale=0.25,
                ),
                helper.make_node("Squeeze", ["q", "front"], ["b"]),
            ),
            "RoiAlign it: it takes the largest of its samples",
        ),
        (
            forms.one("Resize", [1, 4, 8, 12], 10, forms.floats(1, 1, 2, 0.75), mode="nearest"),
            "Resize the one: it makes one axis longer and another shorter, .* operator set 11 or later",
        ),
        (forms.sparse(sides=1 << 15), "w: it is sparse, and sparse weights would be more than .* export the network"),
        (
            decided("CumSum", []),
            "CumSum the one: inputs of the network decide on its axis, .*; make its axis a constant",
        ),
        (decided("ReduceMax", [1]), "ReduceMax the one: inputs of the network decide on its axes"),
        (
            decided("Pad", [4], helper.make_node("Add", ["p", "one"], ["c"])),
            "Pad the one: inputs of the network decide on its pads",
        ),
    ],
    ids=[
        *("mean", "deviation", "dropped", "drops", "trains", "places", "nothing", "samples"),
        *("logarithm", "logarithm of one", "logarithm of powers"),
        *("part", "sizes", "infinite in a branch", "length in a branch", "scattered in a branch"),
        *("nearest in a branch", "by scales that are computed there"),
        *("samples in a branch", "longer and shorter"),
        *("sparse", "axis", "axes", "pads"),
    ],
)
@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
def test_what_tvm_lacks_is_refused_by_name(model: ModelProto, words: str, simplifier: Any) -> None:
    with pytest.raises(NetworkError, match=words):
        clean(deepcopy(model), {}, simplifier)


@pytest.mark.parametrize(
    "model",
    [
        decided("Pad", ["N"], helper.make_node("Shape", ["p"], ["c"])),
        decided("ReduceMax", [1], helper.make_node("CastLike", ["one", "p"], ["c"])),
        decided("Slice", [1]),
        decided("Pad", [4], helper.make_node("NonZero", ["p"], ["n"]), helper.make_node("Add", ["p", "one"], ["c"])),
    ],
    ids=["sizes", "a type", "taken", "has another reason"],
)
def test_what_inputs_do_not_decide_on_is_not_refused_for_it(model: ModelProto) -> None:
    assert refuse_unfixed_inputs(model) is None
    model.graph.node.append(helper.make_node("CumSum", ["x", "p"], ["unread"]))
    assert refuse_unfixed_inputs(model) is None


def test_sizes_that_an_input_tells_and_the_network_says_are_taken() -> None:
    model = decided("Reshape", [2])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4]))
    result, _ = clean(deepcopy(model), {}, failing)
    assert "p" not in [value.name for value in result.graph.input]


def test_a_dropout_that_drops_nothing_is_taken() -> None:
    model = dropped(training=True, ratio=0.0)
    result, _ = clean(deepcopy(model), {}, failing)
    assert same(outputs(model), outputs(result))


def test_outputs_of_training_that_nothing_reads_are_left_out() -> None:
    model = layer()
    model.graph.node[0].output.extend(["m", "d"])
    result, _ = clean(deepcopy(model), {}, failing)
    assert same(outputs(model), outputs(result))


def test_places_of_constants_are_constant() -> None:
    """NonZero of a constant, as exporters of PyTorch write for masks, is worked out with what is read by it."""
    nodes = [
        helper.make_node("NonZero", ["m"], ["i"]),
        helper.make_node("Transpose", ["i"], ["t"]),
        helper.make_node("GatherND", ["x", "t"], ["y"]),
    ]
    mask = constant("m", np.asarray([True, False, True]))
    model = model_of(nodes, {"x": [3, 4]}, {"y": [2, 4]}, [mask])
    result, _ = clean(deepcopy(model), {}, failing)
    assert operator_types(result) == {"GatherND"}
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize(
    "model",
    [
        forms.made([1, 0, 3, 2], "DFT", [1, 12, 3, 1], 17, np.asarray(0), axis=1),
        forms.made([1, 0, 9, 2], "STFT", [1, 10], 17, np.asarray(8), None, np.asarray(16), onesided=1),
        forms.made([4, 6, 1], "DFT", [4, 5, 2], 17, np.asarray(6), axis=1, inverse=1, onesided=1),
        forms.made([1, 1, 256, 256], "Col2Im", [1, 1 << 16, 1], 18, forms.integers(256, 256), forms.integers(256, 256)),
    ],
    ids=[
        "of nothing",
        "longer than what is heard",
        "of fewer bins than there are",
        "of patches whose weights fill the memory",
    ],
)
def test_a_transform_that_would_be_nothing_too_much_or_another_stays(model: ModelProto) -> None:
    before = deepcopy(model)
    assert not transforms_to_products(model)
    assert model == before
