"""Shuffles of channels compute the same with the channels last."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper

from tests.networks.forms import drawn
from tests.zoo import constant, model_of
from workers.networks.shuffling import SWAPPED, shuffles_with_channels_last

LAST = [0, 2, 3, 1]


def shuffling(
    joined: bool = True,
    divided: bool = True,
    groups: int = 2,
    perm: list[int] | None = None,
    watched: str | None = None,
    opset: int = 17,
) -> ModelProto:
    """Two inputs' channels one after the other, shuffled, and halves of them as outputs."""
    nodes: list[NodeProto] = []
    if joined:
        nodes.append(helper.make_node("Concat", ["x", "z"], ["c"], axis=1))
    channels = 24 if joined else 12
    sizes = [1, groups, channels // groups, 5, 4]
    nodes += [
        helper.make_node("Reshape", ["c" if joined else "x", "grouped"], ["g"]),
        helper.make_node("Transpose", ["g"], ["t"], perm=perm or SWAPPED),
        helper.make_node("Reshape", ["t", "whole"], ["s"]),
    ]
    outputs: dict[str, Any] = {"y": None}
    if divided:
        nodes.append(helper.make_node("Split", ["s", "parts"], ["a", "b"], axis=-3))
        nodes += [helper.make_node("Conv", ["a", "w"], ["y"]), helper.make_node("Neg", ["b"], ["v"])]
        outputs["v"] = None
    else:
        nodes.append(helper.make_node("Conv", ["s", "w"], ["y"]))
    if watched:
        outputs[watched] = None
    weights = [
        constant("grouped", np.asarray(sizes, np.int64)),
        constant("whole", np.asarray([1, channels, 5, 4], np.int64)),
        constant("parts", np.asarray([channels // 2 - 2, channels // 2 + 2], np.int64)),
    ]
    weights.append(constant("w", drawn(3, channels // 2 - 2 if divided else channels, 1, 1)))
    return model_of(nodes, {"x": [1, 12, 5, 4], "z": [1, 12, 5, 4]}, outputs, weights, opset)


def results(model: ModelProto) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal((1, 12, 5, 4)).astype("f") for name in ("x", "z")}
    return session.run(None, {one.name: given[one.name] for one in session.get_inputs()})


def axes(model: ModelProto) -> list[list[int]]:
    """What is permuted, in order."""
    return [list(node.attribute[0].ints) for node in model.graph.node if node.op_type == "Transpose"]


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("joined", [True, False])
def test_they_compute_what_they_computed(joined: bool, divided: bool, groups: int) -> None:
    model = shuffling(joined, divided, groups)
    before = results(model)
    assert shuffles_with_channels_last(model) == "1 shuffle of channels was written with the channels last"
    assert [0, 1, 2, 4, 3] in axes(model)
    assert axes(model).count(LAST) == 1 + joined, "what is concatenated comes with the channels last too"
    for found, wanted in zip(results(model), before, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "model",
    [
        shuffling(perm=[0, 1, 2, 4, 3]),
        shuffling(watched="g"),
        shuffling(watched="t"),
        shuffling(opset=12, divided=False),
    ],
    ids=["it permutes something else", "its groups are read", "its permuted groups are read", "an old operator set"],
)
def test_what_is_no_shuffle_alone_is_left_as_it_is(model: ModelProto) -> None:
    before = model.SerializeToString()
    assert shuffles_with_channels_last(model) is None
    assert model.SerializeToString() == before


@pytest.mark.parametrize("watched", ["c", "s"])
def test_what_others_read_of_it_stays(watched: str) -> None:
    """The concatenation, or the shuffled channels before they are split."""
    model = shuffling(watched=watched)
    before = results(model)
    assert shuffles_with_channels_last(model)
    for found, wanted in zip(results(model), before, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.mutation
def test_channels_permuted_the_other_way_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.networks import shuffling as changed

    model = shuffling()
    before = results(model)
    monkeypatch.setattr(changed, "channels_last", lambda rank: [0, 3, 2, 1])
    assert shuffles_with_channels_last(model)
    assert not np.array_equal(results(model)[0], before[0])
