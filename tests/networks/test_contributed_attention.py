"""Attention as ONNX Runtime's optimiser puts it together is taken, and computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

from tests.child.test_inspect import inspected
from tests.networks.forms import drawn
from tests.networks.test_contributed import OWN, cleaned_of
from tests.zoo import constant, model_of
from workers.networks.errors import NetworkError
from workers.networks.graph import operator_types

BATCH, LENGTH, HEADS, WIDTH = 2, 6, 2, 16
RAW = np.asarray([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)
BY_QUERY = np.tril(np.ones((BATCH, LENGTH, LENGTH), np.int32))


def packed(layers: int = 1, mask: Any = None, added: bool = False, version: int = 17, **attributes: Any) -> ModelProto:
    """`layers` of queries, keys and values of the layer before, which share their mask m."""
    name, nodes, weights = "x", [], [constant("d", drawn(1, HEADS, LENGTH, LENGTH))]
    for layer in range(layers):
        read = [
            name,
            f"w{layer}",
            f"b{layer}",
            "m" if mask is not None else "",
            "",
            "d" if added else "",
        ]
        name = f"a{layer}"
        nodes.append(helper.make_node("Attention", read, [name], domain=OWN, num_heads=HEADS, **attributes))
        weights += [constant(f"w{layer}", drawn(WIDTH, 3 * WIDTH, seed=layer)), constant(f"b{layer}", drawn(3 * WIDTH))]
    nodes.append(helper.make_node("Tanh", [name], ["y"]))
    return given(nodes, {"x": [BATCH, LENGTH, WIDTH]}, weights, mask, version)


def three(
    mask: Any = None, bias: bool = True, added: bool = False, keys: int = LENGTH, version: int = 17, **attributes: Any
) -> ModelProto:
    """Of queries x and other keys and values."""
    read = ["q", "k", "v", "b" if bias else "", "m" if mask is not None else "", "d" if added else ""]
    nodes = [
        *(helper.make_node("MatMul", [one, f"w{to}"], [to]) for one, to in (("x", "q"), ("z", "k"), ("z", "v"))),
        helper.make_node("MultiHeadAttention", read, ["y"], domain=OWN, num_heads=HEADS, **attributes),
    ]
    weights = [constant(f"w{one}", 3 * drawn(WIDTH, WIDTH, seed=seed)) for seed, one in enumerate("qkv")]
    weights += [constant("b", drawn(3 * WIDTH)), constant("d", drawn(1, HEADS, LENGTH, keys))]
    return given(nodes, {"x": [BATCH, LENGTH, WIDTH], "z": [BATCH, keys, WIDTH]}, weights, mask, version)


def given(nodes: Any, inputs: Any, weights: Any, mask: Any, version: int) -> ModelProto:
    read = {name for node in nodes for name in node.input}
    model = model_of(nodes, inputs, {"y": None}, [one for one in weights if one.name in read], version)
    model.opset_import.append(helper.make_opsetid(OWN, 1))
    if mask is not None:
        model.graph.input.append(helper.make_tensor_value_info("m", 6, mask.shape))
    return model


def halved(model: ModelProto) -> ModelProto:
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == 1:
            value.type.tensor_type.elem_type = 10
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    return model


def computed(model: ModelProto, mask: Any) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {port.name: drawn(*port.shape, seed=7) for port in session.get_inputs() if port.name != "m"}
    return session.run(None, {**feeds, **({} if mask is None else {"m": mask})})[0]


PAST = {"unidirectional": 1}
FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "packed": (packed, {}),
    "packed, older": (packed, {"version": 11, "mask": RAW}),
    "packed, masked": (packed, {"mask": RAW}),
    "packed, masked by query": (packed, {"mask": BY_QUERY}),
    "packed, masked by the lowest": (packed, {"mask": RAW, "mask_filter_value": float(np.finfo(np.float32).min)}),
    "packed, of the past": (packed, PAST),
    "packed, of the past, masked": (packed, {"mask": RAW[::-1, ::-1].copy(), **PAST}),
    "packed, scaled": (packed, {"scale": 0.9}),
    "packed, where each looks": (packed, {"added": True}),
    "three": (three, {}),
    "three, older": (three, {"version": 12, "mask": RAW}),
    "three, of fewer keys": (three, {"keys": 4}),
    "three, without bias": (three, {"bias": False}),
    "three, masked": (three, {"mask": RAW}),
    "three, of the past": (three, PAST),
    "three, scaled": (three, {"scale": 0.9}),
    "three, where each looks": (three, {"added": True, "keys": 5}),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_attention_computes_what_it_did(name: str, tmp_path: Path) -> None:
    build, how = FORMS[name]
    model, mask = build(**how), how.get("mask")
    wanted = computed(model, mask)
    assert tuple(inspected(model, tmp_path / "upload.onnx")["outputs"][0]["shape"]) == wanted.shape
    result = cleaned_of(model, tmp_path)
    assert not operator_types(result) & {"Attention", "MultiHeadAttention", "Trilu", "Shape", "CastLike"}
    np.testing.assert_allclose(computed(result, mask), wanted, rtol=1e-4, atol=1e-5)


def test_layers_share_a_mask_and_are_work(tmp_path: Path) -> None:
    model = packed(layers=3, mask=RAW)
    work = inspected(model, tmp_path / "upload.onnx")["work"]
    assert work["MatMul"] == 3 * 2 * BATCH * LENGTH * (WIDTH * 3 * WIDTH + 2 * LENGTH * WIDTH)
    wanted, result = computed(model, RAW), cleaned_of(model, tmp_path)
    assert [node.op_type for node in result.graph.node].count("Where") == 1
    np.testing.assert_allclose(computed(result, RAW), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", [11, 17])
def test_halves_attend_too(version: int, tmp_path: Path) -> None:
    model = halved(packed(layers=2, mask=RAW, version=version))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = drawn(BATCH, LENGTH, WIDTH, seed=7).astype(np.float16)
    inspection = inspected(model, tmp_path / "upload.onnx")
    assert inspection["outputs"][0] == {"name": "y", "dtype": "float16", "shape": [BATCH, LENGTH, WIDTH]}
    result = onnxruntime.InferenceSession(cleaned_of(model, tmp_path).SerializeToString())
    wanted, found = (one.run(None, {"x": x, "m": RAW})[0] for one in (session, result))
    np.testing.assert_allclose(found, wanted, atol=5e-3)


@pytest.mark.parametrize(
    "model",
    [
        packed(mask=np.asarray([4, 6], np.int32)),
        packed(qkv_hidden_sizes=[WIDTH, WIDTH, WIDTH]),
        packed(do_rotary=1),
        packed(version=14, unidirectional=1),
    ],
    ids=["lengths", "sizes", "rotated", "of the past in an older set"],
)
def test_other_forms_are_refused_at_the_upload(model: ModelProto, tmp_path: Path) -> None:
    with pytest.raises(
        NetworkError, match=r"Attention a0: .* lengths in place of a mask, .* without a cache, with masks"
    ):
        inspected(model, tmp_path / "network.onnx")
