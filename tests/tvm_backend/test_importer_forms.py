"""Small networks in forms of their own through cleaning and import compute what ONNX Runtime computes on the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.networks import forms
from tests.networks.test_forms import in_parts
from tests.tvm_backend.local import reference, target
from tests.tvm_backend.test_configurations import Compiled, compiled_right
from tests.zoo import constant, model_of
from workers.networks.errors import NetworkError
from workers.networks.importable import CONVERTED

pytestmark = pytest.mark.tvm

BY_NUMBER = re.compile(r"T\.(sigmoid|exp|erf|tanh|log)\(")
"""Functions of the C library in TensorIR."""
NUMBER = re.compile(r"T\.int64\((\d+)\)")
TURNED = re.compile(r"T\.grid\(([^\n]*)\):\s+with T\.sblock\(\"T_transpose")
"""The loops of a transposition."""


def written(model: ModelProto, folder: Path) -> Path:
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("name", list(forms.FORMS))
def test_every_form_is_imported_as_what_it_is(name: str, tmp_path: Path) -> None:
    model = forms.FORMS[name]()
    path = written(model, tmp_path)
    compiled = Compiled(path)
    x = np.random.default_rng(1).standard_normal(compiled.shape).astype(np.float32)
    wanted = reference(path, x)
    # The steps of what recurs are many operators, each of them some seconds of compiling.
    for best in ({},) if name in forms.RECURRENT else (None, compiled.drawn(np.random.default_rng(2))):
        found = compiled.run(best, x)
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= 1e-5 * max(1.0, float(np.abs(wanted).max()))
    assert compiled.imported.layout == ("NHWC" if name.startswith(("Conv", "STFT")) else "none")


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_the_channels_of_signals_and_volumes_are_last_too(axes: int, tmp_path: Path) -> None:
    """What comes in and what goes out is transposed, and nothing between."""
    compiled = Compiled(written(forms.convolved(axes), tmp_path))
    assert [task.name.count("transpose") for task in compiled.extracted].count(1) == 2
    assert len(compiled.extracted) == 4


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolutions_of_groups_alone_keep_their_channels_first(axes: int, tmp_path: Path) -> None:
    ones, wide = [1] * axes, [8, 8]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("ConvTranspose", ["c", "v"], ["d"], group=2, strides=[2] * axes),
        helper.make_node("Conv", ["d", "w"], ["y"]),
    ]
    weights = [constant("w", forms.drawn(*wide, *ones)), constant("v", forms.drawn(8, 4, *[3] * axes))]
    model = model_of(nodes, {"x": [1, 8, *[4] * axes]}, {"y": None}, weights)
    compiled = compiled_right(model, tmp_path, seeds=1, tolerance=1e-5)
    assert compiled.imported.layout == "NHWC"
    assert not compiled.imported.notes


def test_a_layer_normalisation_that_was_put_together_is_one_program(tmp_path: Path) -> None:
    """In an operator set in which ONNX has none."""
    assert len(compiled_right(in_parts(13), tmp_path, seeds=1, tolerance=1e-5).extracted) == 1


@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_the_larger_of_two_parts_keeps_its_channels_last(kind: str, tmp_path: Path) -> None:
    """As a LightCNN's units do; what comes in and what goes out is turned, and nothing is stacked to be reduced."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Split", ["c", "halves"], ["a", "b"], axis=1),
        helper.make_node(kind, ["a", "b"], ["m"]),
        helper.make_node("Conv", ["m", "v"], ["y"]),
    ]
    weights = [
        constant("w", forms.drawn(32, 8, 3, 3)), constant("v", forms.drawn(16, 16, 3, 3)),
        constant("halves", forms.integers(16, 16)),
    ]  # fmt: skip
    compiled = compiled_right(model_of(nodes, {"x": [1, 8, 12, 12]}, {"y": None}, weights), tmp_path, seeds=1)
    names = [task.name for task in compiled.extracted]
    assert not any("stack" in name or "broadcast" in name for name in names), names
    assert sum("transpose" in name for name in names) == 2, names


@pytest.mark.parametrize("kind", ["Softplus", "Mish"])
def test_what_is_written_with_one_exponential_keeps_its_channels_last(kind: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(kind, ["c"], ["m"]),
        helper.make_node("Conv", ["m", "w"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 16, 12, 12]}, {"y": None}, [constant("w", forms.drawn(16, 16, 3, 3))], 18)
    names = [task.name for task in compiled_right(model, tmp_path, seeds=1).extracted]
    assert sum("transpose" in name for name in names) == 2, names
    assert len(names) == 4, names


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_between_convolutions_and_a_normalisation_of_groups_nothing_is_transposed(axes: int, tmp_path: Path) -> None:
    """As PyTorch writes it: its scale and shift have an axis less than a signal, an image or a volume. What comes in and what
    goes out is, beside statistics."""
    area = {1: [40], 2: [10, 12], 3: [6, 5, 8]}[axes]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "rows"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "s", "b"], ["n"]),
        helper.make_node("Reshape", ["n", "image"], ["i"]),
        helper.make_node("Mul", ["i", "scale"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["y"]),
    ]
    ones = [1] * axes
    weights = [
        constant("w", forms.drawn(8, 8, *ones)), constant("v", forms.drawn(8, 8, *ones, seed=1)),
        constant("scale", forms.drawn(8, *ones, seed=2)), constant("shift", forms.drawn(8, *ones, seed=3)),
        constant("rows", np.asarray([1, 4, -1])), constant("image", np.asarray([1, 8, *area])),
        constant("s", np.ones(4, np.float32)), constant("b", np.zeros(4, np.float32)),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [1, 8, *area]}, {"y": None}, weights)
    script = compiled_right(model, tmp_path, seeds=1).imported.mod.script()
    turned = [np.prod([int(size) for size in NUMBER.findall(grid)]) for grid in TURNED.findall(script)]
    assert sum(size == 8 * np.prod(area) for size in turned) == 2


def test_what_convolutions_and_their_normalisations_of_groups_make_is_never_transposed(tmp_path: Path) -> None:
    compiled = Compiled(written(generator(), tmp_path))
    large = 16 * 14 * 14
    moved = [
        workload
        for workload in compiled.workloads
        if workload.flops == 0 and workload.touched >= 2 * 4 * large and not workload.weights
    ]
    assert len(moved) <= 3, "what comes in, what goes out, and pixels that are put beside each other"


def generator() -> ModelProto:
    """A convolution, a normalisation of groups as PyTorch writes it, a transposed convolution and a last one."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "rows"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "s", "b"], ["n"]),
        helper.make_node("Reshape", ["n", "image"], ["i"]),
        helper.make_node("Mul", ["i", "k"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("ConvTranspose", ["r", "v"], ["u"], strides=[2, 2]),
        helper.make_node("Relu", ["u"], ["z"]),
        helper.make_node("Conv", ["z", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    weights = [
        constant("w", forms.drawn(16, 16, 3, 3)),
        constant("v", forms.drawn(16, 16, 2, 2)),
        constant("k", forms.drawn(16, 1, 1)),
        constant("rows", np.asarray([1, 4, -1])),
        constant("image", np.asarray([1, 16, 14, 14])),
        constant("s", np.ones(4, np.float32)),
        constant("b", np.zeros(4, np.float32)),
    ]
    return model_of(nodes, {"x": [1, 16, 14, 14]}, {"y": None}, weights)


def convolutions(**padding: Any) -> ModelProto:
    weights = [constant(name, forms.drawn(16, 16, 3, 3, seed=place)) for place, name in enumerate("vw")]
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], **padding),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[3, 3], **padding),
        helper.make_node("Conv", ["c", "w"], ["y"], **padding),
    ]
    return model_of(nodes, {"x": [1, 16, 14, 14]}, {"y": None}, weights)


def test_padding_to_the_same_size_is_the_padding_of_the_convolution_in_its_layout(tmp_path: Path) -> None:
    """An operator of its own for the zeros would be a copy, with a change of the layout before and behind it."""
    names = [
        sorted(task.name for task in Compiled(written(convolutions(**padding), tmp_path)).extracted)
        for padding in ({"auto_pad": "SAME_UPPER"}, {"pads": [1, 1, 1, 1]})
    ]
    assert names[0] == names[1]


def activation(kind: str, **attributes: Any) -> ModelProto:
    node = helper.make_node(kind, ["x"], ["y"], **attributes)
    return model_of([node], {"x": [64, 1024]}, {"y": [64, 1024]}, [], 20)


def silu() -> ModelProto:
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])]
    return model_of(nodes, {"x": [64, 1024]}, {"y": [64, 1024]}, [])


@pytest.mark.parametrize(
    ("model", "exact"),
    [
        (activation("Sigmoid"), lambda x: 1 / (1 + np.exp(-x))),
        (silu(), lambda x: x / (1 + np.exp(-x))),
        (activation("Softplus"), lambda x: np.logaddexp(0, x)),
        (activation("Gelu"), None),
        (activation("Gelu", approximate="tanh"), None),
    ],
    ids=["sigmoid", "silu", "softplus", "gelu", "gelu by tanh"],
)
def test_activations_are_polynomials_exact_to_some_units_in_the_last_place(
    model: ModelProto, exact: Any, tmp_path: Path
) -> None:
    path = written(model, tmp_path)
    compiled = Compiled(path)
    assert not BY_NUMBER.findall(compiled.imported.mod.script())
    x = np.linspace(-100, 100, 64 * 1024, dtype=np.float32).reshape(64, 1024)
    found = compiled.run({}, x)
    assert np.abs(found - reference(path, x)).max() <= 1e-6 * 100
    if exact is not None:  # far below zero as well, where a sum of 1 and a small number would leave none
        shown = np.abs(x) < 80
        wanted = exact(x.astype(np.float64))
        assert (np.abs(found - wanted)[shown] <= 1e-6 * np.abs(wanted)[shown]).all()


def test_what_can_be_taken_is_known_without_tvm() -> None:
    target()
    from tvm.relax.frontend.onnx.onnx_frontend import _get_convert_map

    assert set(_get_convert_map()) == CONVERTED


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("NonZero", "NonZero: how much comes out .* export the network without its post-processing"),
        ("LSTM", "LSTM: only recurrent operators .* 64 steps .* give a shorter sequence"),
        (
            "GRU",
            "GRU: .* usual activations.* without clip, peepholes and input_forget; .* with layout=0 and without these",
        ),
        ("Det", "Det: TVM cannot import these operators; export the network with others"),
    ],
)
def test_what_cannot_be_imported_is_refused_by_its_own_name_also_inside_of_branches(kind: str, words: str) -> None:
    import tvm

    from workers.tvm_backend.importer import import_network

    value = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
    branches = {
        f"{name}_branch": helper.make_graph([helper.make_node(kind, ["x"], ["b"])], name, [], [value])
        for name in ("then", "else")
    }
    node = helper.make_node("If", ["c"], ["y"], **branches)
    model = model_of([node], {"x": [2, 2]}, {"y": None}, [constant("c", np.asarray(True))])
    with pytest.raises(NetworkError, match=words):
        import_network(model, {"x": [2, 2]}, tvm.target.Target(target()))


@pytest.mark.parametrize("within", [False, True], ids=["main", "branch"])
def test_the_operator_that_the_frontend_fails_at_is_named(within: bool) -> None:
    import tvm

    from workers.tvm_backend.importer import ImportFailed, import_network

    lacking = helper.make_node("Attention", ["x"], ["b"], domain="com.microsoft", name="lacking")
    branches = forms.branches([lacking], [helper.make_node("Relu", ["x"], ["b"])], [2, 2, 2])
    node = helper.make_node("If", ["c"], ["b"], name="around", **branches) if within else lacking
    model = model_of([node], {"x": [2, 2, 2]}, {"b": [2, 2, 2]}, [constant("c", np.asarray(True))])
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(ImportFailed, match="TVM cannot import this network: Attention lacking: KeyError 'num_heads'"):
        import_network(model, {"x": [2, 2, 2]}, tvm.target.Target(target()))


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("Traceback:\n  above\nthe reason\n.\n"), "the reason"),
        (KeyError("w"), "KeyError 'w'"),
        (KeyError("ir.Op(span=None, ty=None)"), "KeyError"),
        (ValueError("no rule for\nir.Op(\n  span=None,\n  ty=None)"), "no rule for"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_the_reason_is_a_line_of_words(error: Exception, line: str) -> None:
    target()
    from workers.tvm_backend.importer import last_line

    assert last_line(error) == line
