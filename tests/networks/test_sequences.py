"""Sequences whose tensors are known are those tensors."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from onnx import ModelProto, helper

from tests.networks.forms import SEQUENCES, in_sequence, integers
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks import sequences
from workers.networks.clean import clean
from workers.networks.graph import operator_types

LEFT = {"SplitToSequence", "SequenceAt", "SequenceConstruct"}


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize("name", list(SEQUENCES))
def test_parts_of_known_lengths_are_tensors(name: str, simplifier: Any) -> None:
    result, _ = clean(SEQUENCES[name](), {}, simplifier)
    assert not operator_types(result) & LEFT


def one_of_another(opset: int = 17) -> ModelProto:
    """A part of a part."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "four"], ["q"], axis=1),
        helper.make_node("SequenceAt", ["q", "one"], ["a"]),
        helper.make_node("SplitToSequence", ["a", "three"], ["r"], axis=1),
        helper.make_node("SequenceAt", ["r", "one"], ["b"]),
        helper.make_node("SequenceConstruct", ["b", "b"], ["s"]),
        helper.make_node("SequenceAt", ["s", "one"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    ]
    numbers = {"one": 1, "three": 3, "four": 4}
    return model_of(
        nodes, {"x": [2, 9]}, {"y": None}, [constant(k, integers(v).reshape(())) for k, v in numbers.items()], opset
    )


def test_a_part_of_a_part_is_known_too() -> None:
    model = one_of_another()
    result, report = clean(deepcopy(model), {}, failing)
    assert not operator_types(result) & LEFT
    assert "5 operators on sequences were written by parts" in report
    assert same(outputs(model), outputs(result))


def test_who_else_reads_a_sequence_has_its_parts() -> None:
    model = in_sequence(4, 1, 0)
    model.graph.node.append(helper.make_node("ConcatFromSequence", ["q"], ["z"], axis=0, new_axis=0))
    model.graph.node[-1].input[0] = "p"
    model.graph.node.insert(0, helper.make_node("SplitToSequence", ["x"], ["p"], axis=0))
    model.graph.output.append(helper.make_tensor_value_info("z", 1, None))
    result, _ = clean(deepcopy(model), {}, failing)
    assert operator_types(result) & LEFT == {"SequenceConstruct"}
    assert same(outputs(model), outputs(result))


def test_a_place_beyond_and_too_many_parts_stay() -> None:
    model = in_sequence(4, 1, 3)
    assert sequences.sequences_to_parts(model) == "1 operator on sequences was written by parts"
    assert "SequenceAt" in operator_types(model)
    model = in_sequence(1, 1, 0)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = sequences.MOST + 1
    assert sequences.sequences_to_parts(model) is None


@pytest.mark.mutation
def test_parts_of_even_lengths_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences, "_lengths", lambda *_: [3, 3, 3])
    model = in_sequence(4, 1, 0, 2)
    result, _ = clean(deepcopy(model), {}, failing)
    assert not same(outputs(model), outputs(result))
