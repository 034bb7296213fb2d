"""Quantised networks written as float32 arithmetic round and clip as ONNX Runtime's integer kernels do."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from tests.zoo import constant, model_of, quantised
from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.baselines.verify import Verdict, compare
from workers.networks.check import load
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.inspect import inspect_model
from workers.networks.precision import INTEGER_OPERATORS, PAIRS
from workers.networks.quantized_operators import operators_to_pairs
from workers.networks.tolerance import tolerances

FORMS = [("QDQ", False), ("QDQ", True), ("QOperator", False), ("QOperator", True), ("dynamic", False)]


def outputs(model: ModelProto, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return OnnxRuntimeSession(model.SerializeToString(), 1, exact=True).run(inputs)


def verdict(model: ModelProto, seed: int = 0) -> tuple[Verdict, ModelProto]:
    """The cleaned network, run in float32, against the network as it is."""
    result, _ = clean(deepcopy(model), {})
    inputs = seeded_inputs(inspect_model(model), seed)
    return compare(outputs(result, inputs), outputs(model, inputs), tolerances(model)), result


def kinds(model: ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node}


@pytest.mark.parametrize(("form", "per_channel"), FORMS)
@pytest.mark.parametrize("name", ["tiny", "tiny_attention", "mobilenet_like"])
def test_a_quantised_network_computes_the_same_without_its_integers(
    zoo_cache: Path, name: str, form: str, per_channel: bool
) -> None:
    model = load(quantised(zoo_cache, name, form, per_channel))
    assert kinds(model) & (PAIRS | INTEGER_OPERATORS)
    found, result = verdict(model)
    assert found.passed, found.reason
    assert not kinds(result) & (PAIRS | INTEGER_OPERATORS)
    onnx.checker.check_model(result)


@pytest.mark.parametrize("per_channel", [False, True])
def test_pairs_of_onnx_runtime_s_own_domain_are_known_as_onnx_s(zoo_cache: Path, per_channel: bool) -> None:
    """Its tools take that domain for numbers of 16 bits; sizes, and so the work of what reads them, would not be known."""
    model = load(quantised(zoo_cache, "tiny", "QDQ", per_channel))
    del model.graph.value_info[:]
    own = deepcopy(model)
    for node in own.graph.node:
        if node.op_type in PAIRS:
            node.domain = "com.microsoft"
    own.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert inspect_model(own).flops == inspect_model(model).flops > 0
    assert verdict(own)[0].passed


@pytest.mark.parametrize(("form", "per_channel"), FORMS[:4])
def test_convolutions_and_products_are_rounded_like_integer_kernels(
    zoo_cache: Path, form: str, per_channel: bool
) -> None:
    found, _ = verdict(load(quantised(zoo_cache, "tiny", form, per_channel)))
    assert found.outputs[0].off == 0.0


def rounding(dtype: type, values: NDArray[Any], zero: int, scale: float = 0.5) -> ModelProto:
    weights = [constant("s", np.float32(scale)), constant("z", np.asarray(zero, dtype))]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    return model_of(nodes, {"x": list(values.shape)}, {"y": list(values.shape)}, weights)


@pytest.mark.parametrize("zero", [0, 3, 120])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_halves_round_to_even_and_the_ends_are_clipped(dtype: type, zero: int) -> None:
    values = np.arange(-400, 400, dtype=np.float32) / 4  # half a step and quarters of it, beyond both ends
    model = rounding(dtype, values, zero)
    result, _ = clean(deepcopy(model), {})
    assert np.array_equal(outputs(result, {"x": values})["y"], outputs(model, {"x": values})["y"])


def test_stored_integers_may_enter_and_leave(zoo_cache: Path) -> None:
    weights = [constant("s", np.float32(0.02)), constant("z", np.uint8(7)), constant("t", np.float32(0.31))]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2]),
        helper.make_node("QuantizeLinear", ["p", "t", "z"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 2, 8, 8]}, {"y": [1, 2, 7, 7]}, weights)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.UINT8
    found, _ = verdict(model)
    assert found.passed
    assert found.outputs[0].tolerance.step == 1.0


def branches(join: str, step: float, zero: int, real: bool = False) -> ModelProto:
    """Two branches of other scales, concatenated and quantised once more, as `join` says; read as real numbers too."""
    weights = [
        *(constant(f"s{place}", np.float32(scale)) for place, scale in enumerate((0.25, 0.5))),
        *(constant(f"z{place}", np.uint8(value)) for place, value in enumerate((7, 0))),
        constant("step", np.float32(step)), constant("zero", np.uint8(zero)),
    ]  # fmt: skip
    nodes = [
        *(helper.make_node("QuantizeLinear", ["x", f"s{place}", f"z{place}"], [f"q{place}"]) for place in range(2)),
        *(helper.make_node("DequantizeLinear", [f"q{place}", f"s{place}", f"z{place}"], [f"r{place}"]) for place in range(2)),
        helper.make_node("Concat", ["r0", "r1"], ["c"], axis=1),
        helper.make_node("QuantizeLinear", ["c", "step", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["y"]),
        *([helper.make_node("Neg", ["c"], ["n"])] if real else []),
    ]  # fmt: skip
    if join == "QOperator":
        nodes[4:6] = [
            helper.make_node(
                "QLinearConcat",
                ["step", "zero", "q0", "s0", "z0", "q1", "s1", "z1"],
                ["q"],
                axis=1,
                domain="com.microsoft",
            )
        ]
    model = model_of(nodes, {"x": [1, 3, 5, 8]}, {"y": [1, 6, 5, 8], **({"n": [1, 6, 5, 8]} if real else {})}, weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize(
    ("step", "zero", "roundings"),
    [(0.5, 3, 4), (0.25, 7, 3), (1.0, 0, 4), (float(np.float32(0.25) * np.float32(1.0000001)), 0, 4)],
    ids=["the second's step", "the first's", "neither's", "nearly the first's"],
)
@pytest.mark.parametrize(("join", "real"), [("QDQ", False), ("QDQ", True), ("QOperator", False)])
def test_parts_of_a_concatenation_are_quantised_by_themselves(
    join: str, real: bool, step: float, zero: int, roundings: int
) -> None:
    """What is concatenated for another quantised operator are integers; for others it is the real tensor. A part that is
    quantised so already is taken as it is."""
    model = branches(join, step, zero, real)
    values = {"x": np.random.default_rng(0).uniform(-30, 100, (1, 3, 5, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    for name, wanted in outputs(model, values).items():
        assert np.array_equal(outputs(result, values)[name], wanted)
    made = {node.output[0]: node for node in result.graph.node}
    joined = [node for node in made.values() if node.op_type == "Concat"]
    assert len(joined) == 1 + real
    # What is clipped ends in a Sub; what cannot be beyond the ends is only rounded.
    assert any(all(made[part].op_type in ("Sub", "Round") for part in node.input) for node in joined)
    assert sum(node.op_type == "Round" for node in made.values()) == roundings


def quantised_again(
    scale: np.float32, step: np.float32, zeros: tuple[int, int], dtype: type = np.uint8
) -> tuple[NDArray[Any], set[str]]:
    """All integers of 8 bits by another step, as ONNX Runtime does it too, and by which operators."""
    weights = [
        constant("s", scale),
        constant("z", np.asarray(zeros[0], dtype)),
        constant("t", step),
        constant("u", np.asarray(zeros[1], dtype)),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "t", "u"], ["y"]),
    ]
    model = model_of(nodes, {"x": [256]}, {"y": [256]}, weights)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    result, _ = clean(deepcopy(model), {})
    values: dict[str, NDArray[Any]] = {"x": np.arange(256, dtype=np.uint8).view(dtype)}
    found = outputs(result, values)["y"]
    assert np.array_equal(found, outputs(model, values)["y"])
    return found, kinds(result)


def test_what_is_stored_is_quantised_again_as_it_is_multiplied_out() -> None:
    """Of 255 with this scale the product is rounded down, and a half of it with it; half of 255 is rounded up. Halves of 1 and
    3 are rounded to even: no factor does."""
    scale = np.float32(8421788 * 2.0**-29)
    found, operators = quantised_again(scale, np.float32(2 * scale), (0, 0))
    assert found[255] == 127
    assert "Div" in operators


@pytest.mark.parametrize("seed", range(20))
def test_integers_are_quantised_again_as_onnx_runtime_does(seed: int) -> None:
    """Whatever the scales, and where they meet halves."""
    rng = np.random.default_rng(seed)
    scale = np.float32(rng.uniform(0.001, 0.5))
    step = np.float32(scale * (rng.integers(1, 9) / 2 if seed % 2 else rng.uniform(0.3, 3)))
    low, high = rng.integers(0, 256, 2).tolist()
    _, operators = quantised_again(scale, step, (low, high))
    assert seed % 2 or "Div" not in operators


def test_what_is_dequantised_by_less_than_nothing_is_clipped_at_the_other_end() -> None:
    """128 is one more than int8 holds, of -128."""
    for dtype, zero in ((np.int8, 0), (np.uint8, 128)):
        found, _ = quantised_again(np.float32(-0.1), np.float32(0.1), (zero, zero), dtype)
        assert found.max() == np.iinfo(dtype).max
    assert not quantised_again(np.float32(-0.1), np.float32(0.1), (0, 0))[0].any()


@pytest.mark.parametrize("case", ["twice", "a constant part", "an output"])
def test_what_reads_a_concatenation_may_be_anything(case: str) -> None:
    model = branches("QDQ", 0.5, 3)
    graph = model.graph
    if case == "twice":
        graph.initializer.append(constant("other", np.float32(2.0)))
        graph.node.append(helper.make_node("QuantizeLinear", ["c", "other", "zero"], ["p"]))
        graph.node.append(helper.make_node("DequantizeLinear", ["p", "other", "zero"], ["n"]))
        graph.output.append(helper.make_tensor_value_info("n", TensorProto.FLOAT, [1, 6, 5, 8]))
    elif case == "a constant part":
        graph.initializer.append(
            constant("k", np.random.default_rng(3).uniform(0, 30, (1, 3, 5, 8)).astype(np.float32))
        )
        next(node for node in graph.node if node.op_type == "Concat").input[1] = "k"
    else:
        graph.output.append(helper.make_tensor_value_info("c", TensorProto.FLOAT, [1, 6, 5, 8]))
    values = {"x": np.random.default_rng(0).uniform(-30, 100, (1, 3, 5, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    for name, wanted in outputs(model, values).items():
        assert np.array_equal(outputs(result, values)[name], wanted)


CLIPS: dict[str, tuple[type, Any, Any]] = {
    "as PyTorch trains for 7 bits": (np.uint8, None, 127),
    "both bounds": (np.int8, -8, 7),
    "from below": (np.uint8, 130, None),
    "as wide as the type": (np.int8, -128, 127),
    "no bounds": (np.uint8, None, None),
    "crossed": (np.uint8, 127, 100),
}


def clipped(case: str, read: bool = False) -> ModelProto:
    """A convolution between what is quantised and clipped, its weights so too; `read`: what is not clipped leaves as well."""
    dtype, low, high = CLIPS[case]
    bounds = {"low": low, "high": high}
    weights = [
        *(constant("s", np.float32(0.05)), constant("t", np.float32(0.1137)), constant("z", dtype(61))),
        *(constant(name, dtype(value)) for name, value in bounds.items() if value is not None),
        constant("w", np.random.default_rng(0).uniform(-1, 1, (8, 4, 3, 3)).astype(np.float32)),
        *(constant("ws", np.float32(0.01)), constant("wz", np.int8(0)), constant("wl", np.int8(-63))),
    ]
    names = [name if value is not None else "" for name, value in bounds.items()]

    def triple(source: str, step: str, out: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("QuantizeLinear", [source, step, "z"], [f"{out}_q"]),
            helper.make_node("Clip", [f"{out}_q", *names], [f"{out}_c"]),
            helper.make_node("DequantizeLinear", [f"{out}_c", step, "z"], [out]),
        ]

    nodes = [
        *triple("x", "s", "a"),
        helper.make_node("QuantizeLinear", ["w", "ws", "wz"], ["w_q"]),
        helper.make_node("Clip", ["w_q", "wl"], ["w_c"]),
        helper.make_node("DequantizeLinear", ["w_c", "ws", "wz"], ["b"]),
        helper.make_node("Conv", ["a", "b"], ["c"]),
        *triple("c", "t", "y"),
    ]
    model = model_of(nodes, {"x": [1, 4, 8, 8]}, {"y": None}, weights)
    if read:
        model.graph.output.append(
            helper.make_tensor_value_info("y_q", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [1, 8, 6, 6])
        )
    return model


@pytest.mark.parametrize(("case", "read"), [(case, read) for case in CLIPS for read in (False, True)])
def test_stored_integers_are_clipped_as_onnx_runtime_clips_them(case: str, read: bool) -> None:
    """Beyond both bounds, and whoever reads them before."""
    model = clipped(case, read)
    values = {"x": np.random.default_rng(1).uniform(-9, 9, (1, 4, 8, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    for name, wanted in outputs(model, values).items():
        assert len(np.unique(wanted)) > 1 or case == "crossed"
        assert np.array_equal(outputs(result, values)[name], wanted)


@pytest.mark.parametrize("case", [case for case in CLIPS if case != "crossed"])
def test_what_is_clipped_when_it_is_quantised_stays_whole_and_is_clipped_once(case: str) -> None:
    _, result = verdict(clipped(case))
    assert not kinds(result) & {"Cast", "Clip"}
    assert sum(node.op_type == "Relu" for node in result.graph.node) == 4, "two for each that is rounded"
    (conv,) = (node for node in result.graph.node if node.op_type == "Conv")
    (stored,) = (tensor for tensor in result.graph.initializer if tensor.name == conv.input[1])
    values = onnx.numpy_helper.to_array(stored)
    assert np.array_equal(values, np.rint(values))
    assert values.min() == -63


def test_parts_of_a_concatenation_are_clipped_by_themselves() -> None:
    model = branches("QDQ", 0.5, 3)
    model.graph.initializer.append(constant("most", np.uint8(127)))
    *_, last = model.graph.node
    clip = helper.make_node("Clip", [last.input[0], "", "most"], ["clipped"])
    last.input[0] = "clipped"
    model.graph.node.insert(len(model.graph.node) - 1, clip)
    values = {"x": np.random.default_rng(0).uniform(-30, 100, (1, 3, 5, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    assert np.array_equal(outputs(result, values)["y"], outputs(model, values)["y"])
    assert not kinds(result) & {"Cast", "Clip"}


def stored_softmax(**attributes: int) -> ModelProto:
    weights = [
        *(constant("s", np.float32(0.05)), constant("z", np.uint8(120))),
        *(constant("t", np.float32(1 / 256)), constant("u", np.uint8(0))),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearSoftmax", ["q", "s", "z", "t", "u"], ["p"], domain="com.microsoft", **attributes),
        helper.make_node("DequantizeLinear", ["p", "t", "u"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 4, 3]}, {"y": [2, 4, 3]}, weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


@pytest.mark.parametrize(
    ("attributes", "flat"),
    [
        ({"axis": 1, "opset": 12}, True),
        ({"axis": -2, "opset": 9}, True),
        ({"axis": 0, "opset": 7}, True),
        ({"axis": 2, "opset": 11}, False),
        ({"opset": 12}, False),
        ({"axis": 1, "opset": 13}, False),
    ],
)
def test_an_older_softmax_of_integers_looks_at_all_axes_from_its_own_on(attributes: dict[str, int], flat: bool) -> None:
    found, result = verdict(stored_softmax(**attributes))
    assert found.passed, found.reason
    assert ("Reshape" in kinds(result)) == flat
    assert not kinds(result) & {"Shape", "Flatten", "QLinearSoftmax"}


def test_a_scale_found_at_run_time_stays_with_the_import() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4], "s": []}, {"y": [4]}, [])
    result, _ = clean(deepcopy(model), {})
    assert "QuantizeLinear" in kinds(result)
    inputs = {"x": np.float32([0.1, 0.26, 0.7, 3]), "s": np.asarray(0.1, np.float32)}
    assert np.allclose(outputs(result, inputs)["y"], outputs(model, inputs)["y"])


@pytest.mark.parametrize("axis", [0, 1, -2, 2])
def test_scales_and_zeros_found_at_run_time_run_along_their_axis(axis: int) -> None:
    random, sizes = np.random.default_rng(0), (3, 3, 3)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "half"], ["q"]),
        helper.make_node("Cast", ["r"], ["z"], to=TensorProto.UINT8),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis),
    ]
    weights = [constant("one", np.float32(1)), constant("half", np.uint8(128))]
    model = model_of(nodes, {"x": list(sizes), "s": [3], "r": [3]}, {"y": list(sizes)}, weights)
    result, _ = clean(deepcopy(model), {})
    assert "DequantizeLinear" not in kinds(result)
    x = random.integers(-100, 100, sizes).astype(np.float32)
    inputs = {"x": x, "s": np.float32([0.1, 1, 10]), "r": np.float32([1, 20, 90])}
    assert np.allclose(outputs(result, inputs)["y"], outputs(model, inputs)["y"])


def product_of_integers(kind: str, **sizes: list[int]) -> ModelProto:
    """Of rows and one matrix or two, with `sizes` of scales and zeros; of one number where none are given."""
    random = np.random.default_rng(0)
    scales = {name: random.uniform(0.1, 0.2, sizes.get(name, [])).astype(np.float32) for name in ("as", "bs", "ys")}
    zeros = {name: random.integers(0, 9, sizes.get(name, [])).astype(np.uint8) for name in ("az", "bz", "yz")}
    read = ["a", "b", "az", "bz"] if kind == "MatMulInteger" else ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    weights = [constant(name, values) for name, values in (scales | zeros).items() if name in read]
    weights.append(constant("b", random.integers(0, 9, sizes["b"]).astype(np.uint8)))
    given = helper.make_tensor_value_info("a", TensorProto.UINT8, [2, 5, 4])
    made = TensorProto.INT32 if kind == "MatMulInteger" else TensorProto.UINT8
    model = model_of([helper.make_node(kind, read, ["y"])], {}, {}, weights)
    model.graph.input.append(given)
    model.graph.output.append(helper.make_tensor_value_info("y", made, None))
    return model


@pytest.mark.parametrize(
    ("model", "written"),
    [
        (product_of_integers("MatMulInteger", b=[4, 3], bz=[3]), True),
        (product_of_integers("MatMulInteger", b=[2, 4, 3], bz=[2, 1, 3]), False),
        (product_of_integers("QLinearMatMul", b=[4, 3], bs=[3], bz=[3]), True),
        (product_of_integers("QLinearMatMul", b=[2, 4, 3], bs=[2, 1, 3], bz=[2, 1, 3]), False),
        (product_of_integers("QLinearMatMul", b=[4, 3], **{"as": [5], "az": [5]}), False),
    ],
    ids=["integers", "integers of two", "stored", "stored of two", "stored by rows"],
)
def test_products_with_scales_of_rows_or_of_several_matrices_stay_what_they_are(
    model: ModelProto, written: bool
) -> None:
    assert (operators_to_pairs(model) is not None) is written


@pytest.mark.parametrize("scale", [[0.02], [0.02, 0.03, 0.04]], ids=["of all", "of each row"])
def test_a_bias_with_scales_of_rows_is_no_bias_of_columns(scale: list[float]) -> None:
    random = np.random.default_rng(0)
    by_row = {"axis": 0} if len(scale) > 1 else {}
    weights = [
        *(constant("s", np.float32(0.1)), constant("z", np.uint8(120))),
        *(constant("b", random.integers(-9, 9, (4, 3)).astype(np.int8)), constant("bs", np.float32([0.2, 0.3, 0.4]))),
        *(constant("c", random.integers(-9, 9, (3, 1)).astype(np.int32)), constant("cs", np.float32(scale).squeeze())),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"], axis=1),
        helper.make_node("DequantizeLinear", ["c", "cs"], ["cr"], **by_row),
        helper.make_node("Gemm", ["r", "br", "cr"], ["y"]),
    ]
    model = model_of(nodes, {"x": [3, 4]}, {"y": [3, 3]}, weights)
    found, _ = verdict(model)
    assert found.passed, found.reason


def test_blocks_of_four_bit_weights_are_dequantised_once() -> None:
    rng = np.random.default_rng(0)
    import ml_dtypes

    stored = rng.integers(-8, 8, (32, 16)).astype(ml_dtypes.int4)
    weights = [constant("w", stored), constant("s", rng.uniform(0.01, 0.1, (2, 16)).astype(np.float32))]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["r"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4, 32]}, {"y": [4, 16]}, weights)
    model.opset_import[0].version, model.ir_version = 21, 10
    found, result = verdict(model)
    assert found.passed
    assert kinds(result) == {"MatMul"}


def test_blocks_whose_scales_are_dequantised_themselves_are_dequantised_once() -> None:
    rng = np.random.default_rng(0)
    stored, steps = rng.integers(-128, 128, (32, 16)).astype(np.int8), rng.integers(1, 255, (2, 16)).astype(np.uint8)
    weights = [constant("w", stored), constant("q", steps), constant("t", np.float32(0.001))]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "t"], ["s"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["r"], axis=0, block_size=16),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4, 32]}, {"y": [4, 16]}, weights, 21)
    result, _ = clean(deepcopy(model), {}, lambda same: same)
    assert kinds(result) == {"MatMul"}
    x = rng.standard_normal((4, 32)).astype(np.float32)
    wanted = x @ (stored * np.repeat(steps * np.float32(0.001), 16, axis=0))
    assert np.allclose(outputs(result, {"x": x})["y"], wanted, atol=1e-4)


def test_blocks_whose_scales_are_told_when_it_runs_are_refused() -> None:
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["y"], name="the one", axis=0, block_size=16)]
    model = model_of(nodes, {"s": [2, 16]}, {"y": [32, 16]}, [constant("w", np.ones((32, 16), np.int8))], 21)
    with pytest.raises(
        NetworkError, match=r"DequantizeLinear the one: it has scales of blocks, .*or that are computed"
    ):
        clean(model, {}, lambda same: same)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_constants_far_beyond_what_is_stored_are_clipped_at_their_own_end(dtype: type) -> None:
    """A mask of float32's lowest number is not its opposite."""
    values = np.asarray([3e9, -3e9, 3.4e38, -3.4e38, 2.6, -1.2], np.float32)
    nodes = [
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    weights = [constant("c", values), constant("s", np.float32(0.5)), constant("z", np.asarray(7, dtype))]
    model = model_of(nodes, {"x": [6]}, {"y": [6]}, weights)
    result, _ = clean(deepcopy(model), {}, lambda same: same)
    assert kinds(result) == {"Add"}
    zeros = {"x": np.zeros(6, np.float32)}
    assert np.array_equal(outputs(result, zeros)["y"], outputs(model, zeros)["y"])


def test_four_bit_weights_of_a_constant_operator_are_taken() -> None:
    import ml_dtypes

    stored = np.random.default_rng(0).integers(-8, 8, (64, 32)).astype(ml_dtypes.int4)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=constant("", stored)),
        helper.make_node("DequantizeLinear", ["w", "s"], ["r"]),
        helper.make_node("MatMul", ["x", "r"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4, 64]}, {"y": [4, 32]}, [constant("s", np.float32(0.1))], 21)
    inspect_model(model)
    x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
    wanted = x @ (stored.astype(np.float32) * np.float32(0.1))
    for simplifier in (None, lambda same: same):
        result, _ = clean(deepcopy(model), {}, simplifier)
        assert kinds(result) == {"MatMul"}
        assert np.allclose(outputs(result, {"x": x})["y"], wanted, atol=1e-4)


@pytest.mark.parametrize("bias", [[0.5, 0.3], [0.5, 0.0]], ids=["all of it", "nothing"])
def test_a_scale_of_0_leaves_the_bias(bias: list[float]) -> None:
    """Of a channel whose weights were all 0 when it was quantised."""
    weights = [
        *(constant("s", np.float32(0.05)), constant("z", np.uint8(120)), constant("b", np.float32(bias))),
        *(constant("w", np.ones((2, 3, 1, 1), np.int8)), constant("wz", np.zeros(2, np.int8))),
        constant("ws", np.float32([0.01, 0])),
    ]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=0),
        helper.make_node("Conv", ["r", "v", "b"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, 3, 4, 4]}, {"y": [1, 2, 4, 4]}, weights)
    values = {"x": np.random.default_rng(0).standard_normal((1, 3, 4, 4)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    assert np.allclose(outputs(result, values)["y"], outputs(model, values)["y"], atol=1e-5)


@pytest.mark.parametrize(("kind", "scale"), [("Relu", -0.01), ("Relu", [0.01, -0.02]), ("MaxPool", -0.01)])
def test_what_is_largest_is_found_behind_a_scale_below_zero(kind: str, scale: Any) -> None:
    """Of whole numbers it would be the least."""
    random = np.random.default_rng(0)
    weights = [
        *(constant("s", np.float32(0.05)), constant("z", np.uint8(120)), constant("ws", np.float32(scale))),
        constant("w", random.integers(-127, 128, (2, 3, 1, 1)).astype(np.int8)),
        constant("wz", np.zeros_like(scale, np.int8)),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["v"], axis=0),
        helper.make_node("Conv", ["r", "v"], ["c"]),
        helper.make_node(kind, ["c"], ["y"], **({"kernel_shape": [2, 2]} if kind == "MaxPool" else {})),
    ]
    model = model_of(nodes, {"x": [1, 3, 4, 4]}, {"y": None}, weights)
    values = {"x": random.standard_normal((1, 3, 4, 4)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    assert np.allclose(outputs(result, values)["y"], outputs(model, values)["y"], atol=1e-5)


def layer(*before: onnx.NodeProto, stored: NDArray[Any], scale: NDArray[Any], axis: int) -> ModelProto:
    """Quantised rows times weights that operators `before` make of the dequantised w: as r."""
    weights = [
        *(constant("s", np.float32(0.03)), constant("z", np.uint8(120)), constant("t", np.float32(0.2))),
        *(constant("w", stored), constant("ws", scale), constant("wz", np.zeros_like(scale, np.int8))),
        constant("shape", np.asarray([32, 64])),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["r" if not before else "d"], axis=axis),
        *before,
        helper.make_node("MatMul", ["xr", "r"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "t", "z"], ["mq"]),
        helper.make_node("DequantizeLinear", ["mq", "t", "z"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 5, 32]}, {"y": [2, 5, 64]}, weights)


TRANSPOSED = helper.make_node("Transpose", ["d"], ["r"], perm=[1, 0])
RESHAPED = helper.make_node("Reshape", ["d", "shape"], ["r"])


@pytest.mark.parametrize("case", ["transposed", "transposed, one scale", "reshaped"])
def test_quantised_weights_that_are_moved_are_whole_numbers(case: str) -> None:
    """Exports of quantisation-aware training transpose a layer's weights behind their DequantizeLinear. What comes out is
    bit by bit that of weights which are stored so."""
    rng = np.random.default_rng(0)
    stored = rng.integers(-127, 128, (32, 64)).astype(np.int8)
    scale = rng.uniform(0.001, 0.01, 64).astype(np.float32)
    one = np.float32(0.004)
    plain = layer(stored=stored, scale=scale if case == "transposed" else one, axis=1)
    model = {
        "transposed": layer(TRANSPOSED, stored=stored.T, scale=scale, axis=0),
        "transposed, one scale": layer(TRANSPOSED, stored=stored.T, scale=one, axis=0),
        "reshaped": layer(RESHAPED, stored=stored.reshape(8, 4, 64), scale=one, axis=0),
    }[case]
    values = {"x": rng.uniform(-3, 3, (2, 5, 32)).astype(np.float32)}
    (result, _), (wanted, _) = clean(deepcopy(model), {}), clean(plain, {})
    product = next(node for node in result.graph.node if node.op_type == "MatMul")
    factors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    assert np.array_equal(factors[product.input[1]], stored)
    assert not kinds(result) & {"Transpose", "Reshape"}
    assert np.array_equal(outputs(result, values)["y"], outputs(wanted, values)["y"])
    found, _ = verdict(model)
    assert found.passed, found.reason


def test_weights_whose_scales_would_be_spread_stay_real() -> None:
    """A scale a channel of what is reshaped runs along no axis."""
    rng = np.random.default_rng(0)
    stored, scale = rng.integers(-127, 128, (8, 4, 64)).astype(np.int8), rng.uniform(0.01, 0.1, 8).astype(np.float32)
    model = layer(RESHAPED, stored=stored, scale=scale, axis=0)
    found, result = verdict(model)
    assert found.passed, found.reason
    product = next(node for node in result.graph.node if node.op_type == "MatMul")
    factors = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer}
    real = (stored * scale[:, None, None]).reshape(32, 64)
    assert np.array_equal(factors[product.input[1]], real)


@pytest.mark.mutation
def test_a_part_by_the_scale_of_another_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.networks.quantization import _Rules

    right = _Rules._in_steps
    monkeypatch.setattr(
        _Rules, "_in_steps", lambda self, source, *others: right(self, source.replace("r1", "r0"), *others)
    )
    model = branches("QDQ", 0.5, 3)
    values = {"x": np.random.default_rng(0).uniform(-30, 100, (1, 3, 5, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    assert not np.array_equal(outputs(result, values)["y"], outputs(model, values)["y"])


@pytest.mark.mutation
@pytest.mark.parametrize("broken", ["scale", "zero", "axis"])
def test_a_dropped_scale_a_wrong_zero_and_a_swapped_axis_are_noticed(zoo_cache: Path, broken: str) -> None:
    model = load(quantised(zoo_cache, "tiny", "QDQ", True))
    inputs = seeded_inputs(inspect_model(model), 0)
    wanted = outputs(model, inputs)
    worse = ModelProto()
    worse.CopyFrom(model)
    for tensor in worse.graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        if broken == "scale" and tensor.name == "w_scale":
            values = np.full_like(values, values.max())
        if broken == "zero" and tensor.name.endswith("x_zero_point"):
            values = (values + 40).astype(values.dtype)
        if broken == "axis" and values.ndim == 4:
            values = np.ascontiguousarray(values.swapaxes(2, 3))
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    assert worse != model
    result, _ = clean(worse, {})
    assert not compare(outputs(result, inputs), wanted, tolerances(model)).passed


@pytest.mark.mutation
def test_a_clip_that_is_passed_over_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.networks.quantization import _Rules

    monkeypatch.setattr(_Rules, "_within", lambda self, clip, ends: ends)
    model = clipped("as PyTorch trains for 7 bits")
    values = {"x": np.random.default_rng(1).uniform(-9, 9, (1, 4, 8, 8)).astype(np.float32)}
    result, _ = clean(deepcopy(model), {})
    assert not np.array_equal(outputs(result, values)["y"], outputs(model, values)["y"])


@pytest.mark.mutation
def test_a_range_that_ends_too_early_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.networks.quantization._RANGES", {TensorProto.UINT8: (0, 254)})
    values = np.arange(-400, 400, dtype=np.float32) / 4
    model = rounding(np.uint8, values, 0, 0.1)
    result, _ = clean(deepcopy(model), {})
    assert not np.array_equal(outputs(result, {"x": values})["y"], outputs(model, {"x": values})["y"])
