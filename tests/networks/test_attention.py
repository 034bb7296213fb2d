"""Attention over keys that are no whole vectors computes the same with keys of zeros added."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

from tests.networks.forms import drawn
from tests.networks.test_clean import outputs, same
from tests.zoo import constant, model_of
from workers.networks import attention
from workers.networks.attention import keys_in_whole_vectors, more
from workers.networks.shapes import tensor_shapes

WRITTEN = "1 attention was given whole vectors of keys"
HEADS, KEYS, WIDTH = 2, 29, 8


def attending(
    *between: tuple[str, Any], axis: int = -1, watched: str = "", keys: int = KEYS, first: bool = False
) -> ModelProto:
    """Of its input as queries, keys and values, with operators and constants between the product and the Softmax; `first` where
    the constants are on the left."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], perm=[0, 1, 3, 2]),
        helper.make_node("Sin", ["x"], ["v"]),
        helper.make_node("MatMul", ["x", "k"], ["s"]),
    ]
    name, weights = "s", []
    for place, (kind, values) in enumerate(between):
        read = [name, f"c{place}"]
        nodes.append(helper.make_node(kind, read[::-1] if first else read, [f"s{place}"]))
        weights.append(constant(f"c{place}", np.asarray(values, np.float32)))
        name = f"s{place}"
    nodes += [
        helper.make_node("Softmax", [name], ["p"], axis=axis),
        helper.make_node("MatMul", ["p", "v"], ["o"]),
        helper.make_node("Relu", ["o"], ["y"]),
    ]
    model = model_of(nodes, {"x": [1, HEADS, keys, WIDTH]}, {"y": None}, weights, 17)
    if watched:
        model.graph.output.append(helper.make_tensor_value_info(watched, 1, None))
    return model


def masked(*sizes: int, first: bool = False, behind: str = "", watched: bool = False) -> ModelProto:
    """The same with a second input m that is added, on the left where `first`; `behind` an operator by a constant, as exports
    make it of 0 and 1. `watched`: m is seen outside as well."""
    model = attending(("Add", 0.0), first=first)
    graph = model.graph
    mask = [
        helper.make_node("Add", ["m", "m"], ["c0" if not behind else "n"]),
        *([helper.make_node(behind, ["n", "two"], ["c0"])] if behind else []),
    ]
    nodes = [*mask, *graph.node]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.append(constant("two", np.float32(2)))
    graph.input.append(helper.make_tensor_value_info("m", 1, sizes))
    if watched:
        graph.output.append(helper.make_tensor_value_info("c0", 1, None))
    return model


def causal() -> Any:
    return np.triu(np.full((1, 1, KEYS, KEYS), np.finfo(np.float32).min), 1)


FORMS: dict[str, ModelProto] = {
    "alone": attending(),
    "scaled": attending(("Mul", 0.3)),
    "divided": attending(("Div", 3.0)),
    "scaled from the left": attending(("Mul", 0.3), ("Add", drawn(KEYS)), first=True),
    "scaled by key": attending(("Div", 1 + np.abs(drawn(KEYS)))),
    "where each looks": attending(("Mul", 0.5), ("Add", drawn(1, HEADS, KEYS, KEYS))),
    "by query": attending(("Sub", drawn(1, 1, KEYS, 1))),
    "causal": attending(("Add", causal())),
    "of an axis that is counted": attending(axis=3),
}


def test_attentions_share_what_they_shared() -> None:
    """A mask of so many megabytes is there once for all layers."""
    one, other = attending(("Add", causal())), attending(("Add", causal()))
    for node in other.graph.node:
        for names in (node.input, node.output):
            names[:] = [name if name == "c0" else "y" if name == "x" else f"{name}_" for name in names]
    one.graph.node.extend(other.graph.node)
    one.graph.output[0].name = "y_"
    before = outputs(deepcopy(one))
    assert keys_in_whole_vectors(one) == "2 attentions were given whole vectors of keys"
    assert len([node for node in one.graph.node if "c0__padded" in node.input]) == 2
    assert same(before, outputs(one))


def hidden(model: ModelProto) -> Any:
    """What is computed where some keys of some queries, and all of one, are hidden: by infinity, and by the lowest number."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x, m = (read.shape for read in session.get_inputs())
    found = []
    for lowest in (-np.inf, np.finfo(np.float32).min / 8):
        mask = np.where(drawn(*m, seed=3) > 0.5, np.float32(lowest), np.float32(0))
        if m[-2:] == [KEYS, KEYS]:
            mask[..., -1, :] = lowest
        found += session.run(None, {"x": drawn(*x, seed=4), "m": mask})
    return found


@pytest.mark.parametrize("behind", ["", "Mul"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "sizes", [(KEYS,), (1, 1, 1, KEYS), (1, 1, KEYS, KEYS), (1, HEADS, KEYS, KEYS), (1, 1, KEYS, 1)]
)
def test_a_mask_that_an_input_decides_is_widened_with_the_keys(
    sizes: tuple[int, ...], first: bool, behind: str
) -> None:
    """Of a query that sees no key the result is no number, as it was."""
    model = masked(*sizes, first=first, behind=behind)
    wanted = hidden(model)
    assert keys_in_whole_vectors(model) == WRITTEN
    shapes = tensor_shapes(model)
    assert {shapes[name].static for name in ("s", "s0", "p")} == {(1, HEADS, KEYS, 32)}
    assert np.isnan(wanted[0]).any() == (sizes[-2:] in ((KEYS, KEYS), (KEYS, 1)))
    for found, one in zip(hidden(model), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-6)


def test_a_mask_that_is_seen_outside_is_seen_as_it_was() -> None:
    model = masked(1, 1, KEYS, KEYS, watched=True)
    wanted = hidden(model)
    assert keys_in_whole_vectors(model) == WRITTEN
    for one, other in zip(hidden(model), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("form", FORMS)
def test_they_compute_what_they_computed(form: str) -> None:
    model = deepcopy(FORMS[form])
    before = outputs(deepcopy(model))
    assert keys_in_whole_vectors(model) == WRITTEN
    shapes = tensor_shapes(model)
    assert {shapes[name].static for name in ("s", "p")} == {(1, HEADS, KEYS, 32)}
    assert same(before, outputs(model))


@pytest.mark.parametrize(
    "model",
    [
        attending(watched="p"),
        attending(watched="s"),
        attending(("Mul", 2.0), watched="s0"),
        attending(axis=2),
        attending(("Pow", 2.0)),
        attending(("Div", 2.0), first=True),
        attending(keys=32),
        attending(keys=36),
        attending(keys=49),
    ],
    ids=[
        "weights that are looked at",
        "scores that are",
        "scaled ones",
        "over queries",
        "another operator",
        "reciprocal",
        "whole",
        "a quarter of a vector more than whole",
        "too few",
    ],
)
def test_others_stay(model: ModelProto) -> None:
    before = model.SerializeToString()
    assert keys_in_whole_vectors(model) is None
    assert model.SerializeToString() == before


def test_a_classifier_stays() -> None:
    """What it multiplies with are constants, and so is what multiplies its probabilities."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    weights = [constant("w", drawn(8, 29)), constant("v", drawn(29, 8))]
    assert keys_in_whole_vectors(model_of(nodes, {"x": [3, 8]}, {"y": None}, weights)) is None


def test_of_two_that_share_a_product_one_is_given_more() -> None:
    """What the first attends to are the second's scores."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["k"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "k"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"]),
        helper.make_node("MatMul", ["x", "k"], ["v"]),
        helper.make_node("MatMul", ["p", "v"], ["s2"]),
        helper.make_node("Softmax", ["s2"], ["p2"]),
        helper.make_node("MatMul", ["p2", "x"], ["y"]),
    ]
    model = model_of(nodes, {"x": [29, 8]}, {"y": None}, [])
    before = outputs(deepcopy(model))
    assert keys_in_whole_vectors(model) == WRITTEN
    assert same(before, outputs(model))


def test_one_key_that_a_constant_spreads_stays() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "k"], ["s"]),
        helper.make_node("Add", ["s", "c"], ["b"]),
        helper.make_node("Softmax", ["b"], ["p"]),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs = {"x": [5, 8], "k": [8, 1], "v": [29, 8]}
    assert keys_in_whole_vectors(model_of(nodes, inputs, {"y": None}, [constant("c", drawn(5, 29))])) is None


def test_values_on_the_left_stay() -> None:
    model = attending()
    model.graph.node[-2].input[:] = ["v", "p"]
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_value = KEYS
    assert keys_in_whole_vectors(model) is None


@pytest.mark.parametrize(
    ("keys", "extra"),
    [
        (197, 11),
        (401, 15),
        (393, 7),
        (257, 15),
        (577, 15),
        (50, 6),
        (77, 3),
        (65, 7),
        (17, 0),
        (49, 0),
        (64, 0),
        (196, 0),
    ],
)
def test_few_are_added(keys: int, extra: int) -> None:
    assert more(keys) == extra


@pytest.mark.mutation
def test_a_mask_that_goes_to_other_keys_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = masked(1, 1, KEYS, KEYS)
    wanted = hidden(model)
    assert keys_in_whole_vectors(model) == WRITTEN
    pads = next(one for one in model.graph.initializer if one.name == "s0__beside_pads")
    pads.CopyFrom(numpy_helper.from_array(np.roll(numpy_helper.to_array(pads), 4), pads.name))
    assert not all(np.allclose(*pair, equal_nan=True) for pair in zip(hidden(model), wanted, strict=True))


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["inf", "pad"])
def test_keys_that_are_weighed_are_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mask; or where constants are widened on the wrong side."""
    model = deepcopy(FORMS["scaled by key"])
    before = outputs(deepcopy(model))
    if name == "inf":
        monkeypatch.setattr(attention.np, "inf", 0.0)
    else:
        right = np.pad
        monkeypatch.setattr(attention.np, "pad", lambda v, room, **g: right(v, [(b, a) for a, b in room], **g))
    assert keys_in_whole_vectors(model) == WRITTEN
    assert not same(before, outputs(model))
