"""Shuffles of what was concatenated: which are one operator, and what they come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.tvm_backend.local import reference
from tests.tvm_backend.test_configurations import compiled, compiled_right, drawn_input
from tests.tvm_backend.test_integers import clipped
from tests.zoo import constant, model_of

pytestmark = pytest.mark.tvm

SIDE = 6


def shuffled(
    channels: tuple[int, ...],
    groups: int,
    sections: tuple[int, ...] = (),
    last: int = SIDE,
    axes: Any = (0, 2, 1, 3, 4),
) -> ModelProto:
    """Convolutions side by side, their channels in turns, in parts of so many, each of which is read by one more."""
    whole = sum(channels)
    parts = [f"part{place}" for place in range(len(sections))] or ["shuffled"]
    nodes = [
        *(helper.make_node("Conv", ["x", f"w{place}"], [f"c{place}"]) for place in range(len(channels))),
        helper.make_node("Concat", [f"c{place}" for place in range(len(channels))], ["joined"], axis=1),
        helper.make_node("Reshape", ["joined", "grouped"], ["g"]),
        helper.make_node("Transpose", ["g"], ["t"], perm=axes),
        helper.make_node("Reshape", ["t", "whole"], ["shuffled"]),
        *([helper.make_node("Split", ["shuffled", "sections"], parts, axis=1)] if sections else []),
        *(helper.make_node("Conv", [part, f"v{place}"], [f"d{place}"]) for place, part in enumerate(parts)),
        helper.make_node("Concat", [f"d{place}" for place in range(len(parts))], ["y"], axis=1),
    ]  # fmt: skip
    weights = [
        *(constant(f"w{place}", drawn(many, 8, 1, 1, seed=place)) for place, many in enumerate(channels)),
        *(constant(f"v{place}", drawn(4, many, 1, 1, seed=place)) for place, many in enumerate(sections or (whole,))),
        constant("grouped", np.int64([1, groups, whole // groups, SIDE, last])),
        constant("whole", np.int64([1, whole, SIDE, last])),
        *([constant("sections", np.int64(sections))] if sections else []),
    ]
    return model_of(nodes, {"x": [1, 8, SIDE, last]}, {"y": None}, weights)


def check(model: ModelProto, folder: Path) -> int:
    """How many operators put channels in turns; what all compute is right."""
    one = compiled_right(model, folder)
    return sum("interleave" in operator.name for operator in one.extracted)


@pytest.mark.parametrize(
    ("channels", "sections"),
    [((16, 16), ()), ((16, 16), (16, 16)), ((58, 58), (58, 58)), ((15, 15), (15, 15)), ((8, 8, 8), (10, 3, 11))],
)  # fmt: skip
def test_a_shuffle_of_as_many_groups_as_tensors_is_one_operator_a_part(
    channels: tuple[int, ...], sections: tuple[int, ...], tmp_path: Path
) -> None:
    assert check(shuffled(channels, len(channels), sections), tmp_path) == max(1, len(sections))


@pytest.mark.parametrize(
    "model",
    [
        lambda: shuffled((16, 16), 4, (16, 16)),
        lambda: shuffled((8, 24), 2, (16, 16)),
        lambda: shuffled((8, 8), 2, last=8, axes=(0, 4, 1, 3, 2)),
    ],
    ids=["more groups than tensors", "tensors of other sizes", "another permutation"],
)
def test_others_are_shuffled_as_before(model: Any, tmp_path: Path) -> None:
    assert check(model(), tmp_path) == 0


@pytest.mark.mutation
@pytest.mark.parametrize("broken", ["start", "turn"])
def test_channels_of_another_part_or_turn_are_noticed(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.tvm_backend import interleaving

    right = interleaving.interleaved
    wrong = {
        "start": lambda parts, start, end: right(parts, 0, end - start),
        "turn": lambda parts, start, end: right(parts[::-1], start, end),
    }[broken]
    monkeypatch.setattr(interleaving, "interleaved", wrong)
    with pytest.raises(AssertionError):
        check(shuffled((16, 16), 2, (16, 16)), tmp_path)


def test_whole_numbers_are_multiplied_as_such_behind_a_shuffle(tmp_path: Path) -> None:
    """Clipped to 0 to 15 in front of the concatenation; the convolution that reads the shuffle sums products of them."""
    model = shuffled((16, 16), 2)
    graph = model.graph
    concatenation = next(node for node in graph.node if node.op_type == "Concat" and node.output[0] == "joined")
    at = list(graph.node).index(concatenation)
    for place in range(2):
        nodes, held = clipped(f"c{place}", f"k{place}_", 0.0, 15.0)
        for offset, node in enumerate(nodes):
            graph.node.insert(at + offset, node)
        at += len(nodes)
        graph.initializer.extend(held)
        concatenation.input[place] = f"k{place}_"
    for tensor in graph.initializer:
        if tensor.name == "v0":
            tensor.CopyFrom(constant("v0", np.rint(drawn(4, 32, 1, 1) * 100)))
    one = compiled(model, tmp_path)
    assert any("conv2d_pairs" in operator.name or "conv2d_fours" in operator.name for operator in one.extracted)
    x = drawn_input(one.shape) * 8
    assert np.abs(one.run({}, x) - reference(tmp_path / "network.onnx", x)).max() < 200
