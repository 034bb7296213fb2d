"""What ONNX Runtime's own quantiser and optimiser write is taken, and computes the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.child.test_inspect import inspected
from tests.networks.forms import drawn
from tests.networks.test_clean import outputs, same
from tests.zoo import constant, model_of
from workers.networks import contributed
from workers.networks.check import checked, load
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import Array, operator_types
from workers.networks.precision import is_quantised
from workers.networks.tolerance import BLOCKS, SINGLE, tolerances

OWN = "com.microsoft"
WIDE, NARROW = 40, 24
"""Sizes that no block of 16 divides."""


def attention(version: int = 17) -> ModelProto:
    """Queries, keys and values of x, and a layer behind."""
    nodes = [
        *(helper.make_node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "t"], ["scores"]),
        helper.make_node("Mul", ["scores", "tenth"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "wo"], ["out"]),
        helper.make_node("Add", ["out", "bias"], ["y"]),
    ]
    shapes = {"wq": (WIDE, NARROW), "wk": (WIDE, NARROW), "wv": (WIDE, NARROW), "wo": (NARROW, 7)}
    weights = [*(constant(name, drawn(*shape)) for name, shape in shapes.items()), constant("tenth", np.float32(0.1))]
    return model_of(nodes, {"x": ["batch", 5, WIDE]}, {"y": None}, [*weights, constant("bias", drawn(7))], version)


def own(
    nodes: list[NodeProto],
    constants: list[TensorProto],
    shape: Sequence[int] = (3, WIDE),
    version: int = 17,
    kind: int = TensorProto.FLOAT,
) -> ModelProto:
    model = model_of(nodes, {"x": [*shape]}, {"y": None}, constants, version)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = kind
    model.opset_import.append(helper.make_opsetid(OWN, 1))
    return model


def cleaned_of(model: ModelProto, folder: Path) -> ModelProto:
    path = folder / "network.onnx"
    path.write_bytes(model.SerializeToString())
    return clean(load(path), {})[0]


def quantised(path: Path, bits: int, symmetric: bool, version: int = 17, **settings: Any) -> Path:
    """The attention, its weights stored as ONNX Runtime's quantiser does by itself."""
    from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

    chosen = DefaultWeightOnlyQuantConfig(block_size=16, is_symmetric=symmetric, bits=bits, **settings)
    writer = MatMulNBitsQuantizer(attention(version), algo_config=chosen)
    writer.process()
    model: ModelProto = writer.model.model
    assert "MatMulNBits" in operator_types(model)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("version", [11, 14, 21])
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "with zeros"])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_are_taken(bits: int, symmetric: bool, version: int, tmp_path: Path) -> None:
    path = quantised(tmp_path / "network.onnx", bits, symmetric, version)
    assert inspected(onnx.load(path), tmp_path / "upload.onnx")["outputs"][0]["shape"] == ["batch", 5, 7]
    assert tolerances(load(path))["y"] == SINGLE
    result, _ = clean(load(path), {"x": [2, 5, WIDE]})
    assert operator_types(result) == {"Add", "MatMul", "Mul", "Softmax", "Transpose"}
    assert same(outputs(onnx.load(path), x=[2, 5, WIDE]), outputs(result))


def test_halves_of_few_bits_are_taken(tmp_path: Path) -> None:
    """Scales, and what is multiplied, are float16."""
    stored, scales = np.random.default_rng(0).integers(0, 256, (8, 3, 8), np.uint8), drawn(8, 3).astype(np.float16)
    model = own(
        [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], K=WIDE, N=8, bits=4, block_size=16, domain=OWN)],
        [constant("w", stored), constant("s", scales)],
        kind=TensorProto.FLOAT16,
    )
    result = cleaned_of(model, tmp_path)
    numbers = np.stack([stored & 15, stored >> 4], axis=-1).reshape(8, 48)[:, :WIDE] - 8.0
    x = drawn(3, WIDE).astype(np.float16)
    (found,) = onnxruntime.InferenceSession(result.SerializeToString()).run(None, {"x": x})
    wanted = x.astype(np.float64) @ (numbers * np.repeat(scales.astype(np.float64), 16, axis=1)[:, :WIDE]).T
    assert np.abs(found - wanted).max() < 1e-3 * np.abs(wanted).max()


def test_a_bias_of_weights_of_few_bits_is_added(tmp_path: Path) -> None:
    stored = np.random.default_rng(0).integers(0, 256, (8, 3, 16), np.uint8)
    names = ["x", "w", "s", "", "", "b"]
    node = helper.make_node("MatMulNBits", names, ["y"], K=WIDE, N=8, bits=8, block_size=16, domain=OWN)
    model = own([node], [constant("w", stored), constant("s", drawn(8 * 3)), constant("b", drawn(8))])
    assert same(outputs(model), outputs(cleaned_of(model, tmp_path)))


def test_what_rounds_the_other_factor_too_may_differ_by_that(tmp_path: Path) -> None:
    path = quantised(tmp_path / "network.onnx", 8, True, accuracy_level=4)
    (found,), (wanted,) = outputs(clean(load(path), {"x": [2, 5, WIDE]})[0]), outputs(onnx.load(path), x=[2, 5, WIDE])
    assert tolerances(load(path))["y"] == BLOCKS
    assert np.abs(found - wanted).max() < BLOCKS.relative * np.abs(wanted).max()


def test_weights_in_another_order_are_refused(tmp_path: Path) -> None:
    constants = [constant("w", np.zeros((8, 3, 8), np.uint8)), constant("s", drawn(8, 3))]
    constants.append(constant("g", np.arange(WIDE, dtype=np.int32) % 3))
    names = ["x", "w", "s", "", "g"]
    node = helper.make_node("MatMulNBits", names, ["y"], K=WIDE, N=8, bits=4, block_size=16, domain=OWN)
    with pytest.raises(NetworkError, match="MatMulNBits: TVM cannot import"):
        inspected(own([node], constants), tmp_path / "network.onnx")


@pytest.mark.parametrize(
    "attributes", [{"block_size": b"16"}, {"block_size": 0}, {"N": 9}, {"N": 1 << 40}, {"bits": 2}]
)
def test_weights_that_are_not_as_they_are_told_stay(attributes: dict[str, Any], tmp_path: Path) -> None:
    constants = [constant("w", np.zeros((8, 3, 8), np.uint8)), constant("s", drawn(8, 3))]
    told = {"K": WIDE, "N": 8, "bits": 4, "block_size": 16, **attributes}
    path = tmp_path / "network.onnx"
    path.write_bytes(
        own(
            [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain=OWN, **told)], constants
        ).SerializeToString()
    )
    assert operator_types(load(path)) == {"MatMulNBits"}


def test_what_is_stored_in_few_bits_is_not_kept_twice(tmp_path: Path) -> None:
    path = quantised(tmp_path / "network.onnx", 4, False)
    stored = {tensor.name for tensor in onnx.load(path).graph.initializer if tensor.data_type == TensorProto.UINT8}
    assert stored
    assert stored.isdisjoint(tensor.name for tensor in load(path).graph.initializer)


@pytest.mark.mutation
def test_numbers_of_a_byte_in_the_other_order_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = quantised(tmp_path / "network.onnx", 4, True)
    right = contributed._unpacked

    def turned(packed: Array, *others: int) -> Array | None:
        return right(packed << 4 | packed >> 4, *others)

    monkeypatch.setattr(contributed, "_unpacked", turned)
    result, _ = clean(load(path), {"x": [2, 5, WIDE]})
    assert not same(outputs(onnx.load(path), x=[2, 5, WIDE]), outputs(result))


PICTURE = [2, 3, 9, 9]
FUSED: dict[str, tuple[list[NodeProto], list[int]]] = {
    "product": ([helper.make_node("FusedMatMul", ["x", "x"], ["y"], transB=1, alpha=0.3, domain=OWN)], [2, 3, 4, 5]),
    "product of the other": ([helper.make_node("FusedMatMul", ["x", "x"], ["y"], transA=1, domain=OWN)], [3, 4, 5]),
    "product with a constant": ([helper.make_node("FusedMatMul", ["x", "m"], ["y"], transB=1, domain=OWN)], [3, 4, 6]),
    "gemm": (
        [helper.make_node("FusedGemm", ["x", "m", "b"], ["y"], transB=1, activation="LeakyRelu", activation_alpha=0.2,
                          alpha=0.5, domain=OWN)],
        [3, 6],
    ),
    "quick gelu": ([helper.make_node("QuickGelu", ["x"], ["y"], domain=OWN)], [3, 6]),
    "swish": ([helper.make_node("QuickGelu", ["x"], ["y"], alpha=1.0, domain=OWN)], [3, 6]),
    "squares": ([helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"], epsilon=0.1)], [2, 3, 6]),
    "squares along an axis by its number": (
        [helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"], axis=2)], [2, 3, 6]
    ),
    "sum and squares": (
        [
            helper.make_node("SkipSimplifiedLayerNormalization", ["x", "x", "g", "d"], ["n", "", "", "s"], domain=OWN),
            helper.make_node("Mul", ["n", "s"], ["y"]),
        ],
        [2, 3, 6],
    ),
    **{
        f"convolution and {kind}": (
            [helper.make_node("FusedConv", ["x", "k", "c"], ["y"], activation=kind, pads=[1] * 4,
                              domain=OWN, **numbers)],
            PICTURE,
        )
        for kind, numbers in {
            "Relu": {},
            "LeakyRelu": {"activation_params": [0.3]},
            "Clip": {"activation_params": [-0.1, 0.2]},
            "HardSigmoid": {"activation_params": [0.2, 0.4]},
        }.items()
    },
    "convolution and nothing": ([helper.make_node("FusedConv", ["x", "k", "c"], ["y"], domain=OWN)], PICTURE),
    "convolution and a sum": (
        [
            helper.make_node("Conv", ["x", "k"], ["z"]),
            helper.make_node("FusedConv", ["x", "k", "c", "z"], ["y"], activation="Relu", domain=OWN),
        ],
        PICTURE,
    ),
}  # fmt: skip
CONSTANTS = {"m": (5, 6), "b": (5,), "g": (6,), "d": (6,), "k": (4, 3, 3, 3), "c": (4,)}


@pytest.mark.parametrize("name", list(FUSED))
@pytest.mark.parametrize("version", [12, 13, 18])
def test_what_the_optimiser_puts_together_is_taken(name: str, version: int, tmp_path: Path) -> None:
    nodes, shape = FUSED[name]
    read = {one for node in nodes for one in node.input}
    constants = [constant(one, drawn(*sizes)) for one, sizes in CONSTANTS.items() if one in read]
    model = own(nodes, constants, shape, version)
    inspection = inspected(model, tmp_path / "upload.onnx")
    wanted, result = outputs(model), cleaned_of(model, tmp_path)
    assert tuple(inspection["outputs"][0]["shape"]) == wanted[0].shape
    assert not {node.domain for node in result.graph.node} - {""}
    assert "Einsum" not in operator_types(result)
    assert same(wanted, outputs(result))


@pytest.mark.parametrize("kind", ["SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_small_numbers_are_normalised_by_the_epsilon_that_goes_without_saying(kind: str, tmp_path: Path) -> None:
    """It is another for each of the two: beside numbers near 1 neither shows."""
    skip = kind.startswith("Skip")
    nodes = [
        helper.make_node("Mul", ["x", "little"], ["l"]),
        helper.make_node(kind, ["l", "l", "g"] if skip else ["l", "g"], ["y"], domain=OWN if skip else ""),
    ]
    model = own(nodes, [constant("little", np.float32(1e-3)), constant("g", drawn(6))], [2, 3, 6])
    assert same(outputs(model), outputs(cleaned_of(model, tmp_path)))


def test_sizes_behind_an_operator_of_half_precision_are_known(tmp_path: Path) -> None:
    nodes = [helper.make_node("QuickGelu", ["x"], ["q"], domain=OWN), helper.make_node("MatMul", ["q", "m"], ["y"])]
    model = own(nodes, [constant("m", drawn(WIDE, 7).astype(np.float16))], kind=TensorProto.FLOAT16)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert tuple(inspected(model, tmp_path / "upload.onnx")["outputs"][0]["shape"]) == (3, 7)


def test_weights_in_operators_are_weights(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["g"], value=constant("g", drawn(6))),
        helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"]),
    ]
    model = own(nodes, [], [2, 3, 6])
    assert same(outputs(model), outputs(cleaned_of(model, tmp_path)))


def optimised(network: bytes, path: Path) -> set[str]:
    """What it is written with at `path`."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(network, options)
    return operator_types(onnx.load(path))


def test_what_the_optimiser_writes_of_an_attention_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "optimised.onnx"
    assert "FusedMatMul" in optimised(attention().SerializeToString(), path)
    assert inspected(onnx.load(path), tmp_path / "upload.onnx")["work"]["MatMul"]
    result, _ = clean(load(path), {"x": [2, 5, WIDE]})
    assert same(outputs(attention(), x=[2, 5, WIDE]), outputs(result))


def test_what_the_optimiser_writes_of_a_network_that_is_quantised_when_it_runs_is_taken(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    plain, stored, path = (tmp_path / f"{name}.onnx" for name in ("plain", "stored", "optimised"))
    onnx.save(attention(), plain)
    quantize_dynamic(plain, stored, per_channel=True)
    assert optimised(stored.read_bytes(), path) >= {"MatMulIntegerToFloat", "DynamicQuantizeMatMul"}
    assert inspected(onnx.load(path), tmp_path / "upload.onnx")["precision"] == "quantised at run time"
    assert is_quantised(checked(path)), "as it is run for references"
    result, _ = clean(load(path), {"x": [2, 5, WIDE]})
    (found,), (wanted,) = outputs(result), outputs(onnx.load(path), x=[2, 5, WIDE])
    assert np.abs(found - wanted).max() <= tolerances(load(path))["y"].relative * np.abs(wanted).max()


def test_batches_that_are_turned_too_are_refused(tmp_path: Path) -> None:
    node = helper.make_node("FusedMatMul", ["x", "x"], ["y"], transA=1, transBatchA=1, domain=OWN)
    with pytest.raises(NetworkError, match="FusedMatMul: TVM cannot import"):
        inspected(own([node], [], [3, 3, 3]), tmp_path / "network.onnx")
