"""Sequences of tensors are read as their tensors, and what is behind them has sizes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from tests.networks.forms import SEQUENCES, drawn, in_sequence
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks import sequences
from workers.networks.clean import clean
from workers.networks.graph import Parts, operator_types
from workers.networks.shapes import tensor_shapes

ON_SEQUENCES = {"SplitToSequence", "SequenceConstruct", "SequenceAt", "ConcatFromSequence"}
PLACES = {f"at{place}": place for place in (0, 1, 2, -1)}


def chunked() -> ModelProto:
    """As PyTorch exports conv(relu6(conv(x).chunk(2)[1]))[:, 1] without optimising."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"]),
        helper.make_node("SplitToSequence", ["c", "four"], ["s"], axis=1),
        helper.make_node("Constant", [], ["place"], value=constant("", np.asarray(1))),
        helper.make_node("SequenceAt", ["s", "place"], ["h"]),
        helper.make_node("Clip", ["h", "zero", "six"], ["r"]),
        helper.make_node("Conv", ["r", "l"], ["d"]),
        helper.make_node("Gather", ["d", "place"], ["y"], axis=1),
    ]
    numbers = {"four": np.asarray(4), "zero": np.float32(0), "six": np.float32(6)}
    weights = [constant("k", drawn(8, 3, 3, 3)), constant("l", drawn(5, 4, 1, 1))]
    weights += [constant(name, value) for name, value in numbers.items()]
    return model_of(nodes, {"x": [2, 3, 8, 8]}, {"y": None}, weights, 18)


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
def test_what_is_behind_a_chunk_has_sizes(simplifier: Any) -> None:
    model = chunked()
    result, _ = clean(deepcopy(model), {}, simplifier)
    assert not operator_types(result) & (ON_SEQUENCES | {"Clip"})
    assert all(shape.static is not None for shape in tensor_shapes(result).values())
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
@pytest.mark.parametrize("name", list(SEQUENCES))
def test_parts_of_known_lengths_are_tensors(name: str, simplifier: Any) -> None:
    result, _ = clean(SEQUENCES[name](), {}, simplifier)
    assert not operator_types(result) & ON_SEQUENCES


def of(*nodes: NodeProto) -> ModelProto:
    """Of x[6, 5]; constants are read by their names."""
    read = {name for node in nodes for name in node.input}
    values = {"two": 2, "four": 4, "six": 6, "sizes": [1, 3, 2], **PLACES}
    weights = [constant(name, np.asarray(value)) for name, value in values.items() if name in read]
    return model_of([*nodes], {"x": [6, 5]}, {"y": None}, weights, 17)


def split_at(*places: str, by: str = "", **attributes: int) -> ModelProto:
    """The sum of such parts."""
    return of(
        helper.make_node("SplitToSequence", ["x", *filter(None, [by])], ["s"], **attributes),
        *(helper.make_node("SequenceAt", ["s", place], [f"p_{place}"]) for place in places),
        helper.make_node("Sum", [f"p_{place}" for place in places], ["y"]),
    )


def built(*behind: NodeProto) -> ModelProto:
    """A sequence of x and its opposite, and what reads it."""
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("SequenceConstruct", ["x", "n"], ["s"])]
    return of(*nodes, *behind)


FORMS = {
    "parts of one size": split_at("at0", "at2", by="two"),
    "parts of one size along the last axis": split_at("at0", "at1", by="two", axis=-1),
    "the rest is smaller": split_at("at1", by="four"),
    "sizes": split_at("at0", "at1", by="sizes"),
    "from behind": split_at("at-1", "at2", by="sizes"),
    "places that are kept": split_at("at0", "at2"),
    "places that are dropped": split_at("at0", "at2", axis=1, keepdims=0),
    "places that are dropped where no length is named": of(
        helper.make_node("SplitToSequence", ["x", ""], ["s"], keepdims=0),
        helper.make_node("SequenceAt", ["s", "at1"], ["y"]),
    ),
    "one part": of(
        helper.make_node("SplitToSequence", ["x", "six"], ["s"]),
        helper.make_node("SequenceAt", ["s", "at0"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ),
    "joined": built(helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=-1)),
    "stacked": built(helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=1, new_axis=1)),
    "stacked behind": built(helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1)),
    "built and taken apart": built(helper.make_node("SequenceAt", ["s", "at1"], ["y"])),
    "split and joined": of(
        helper.make_node("SplitToSequence", ["x", "two"], ["s"]),
        helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=1),
    ),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_tensors_of_a_sequence_are_read_themselves(name: str) -> None:
    model = deepcopy(FORMS[name])
    result, _ = clean(deepcopy(model), {}, failing)
    assert not operator_types(result) & ON_SEQUENCES
    assert same(outputs(model), outputs(result))


def test_a_part_of_a_part_is_known_too() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "sizes"], ["s"]),
        helper.make_node("SequenceAt", ["s", "at1"], ["p"]),
        helper.make_node("SplitToSequence", ["p", "two"], ["t"]),
        helper.make_node("SequenceAt", ["t", "at-1"], ["q"]),
        helper.make_node("SequenceConstruct", ["q", "q"], ["u"]),
        helper.make_node("SequenceAt", ["u", "at1"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    model = of(*nodes)
    result, report = clean(deepcopy(model), {}, failing)
    assert not operator_types(result) & ON_SEQUENCES
    assert "5 operators on sequences were written by tensors" in report
    assert same(outputs(model), outputs(result))


def in_branches() -> ModelProto:
    """Of two parts, the second in the branch that is taken because the first has as many rows as the file says, and what is
    taken apart in a branch."""
    taken = helper.make_graph(
        [
            helper.make_node("SplitToSequence", ["p", "two"], ["t"]),
            helper.make_node("SequenceAt", ["t", "at1"], ["q"]),
        ],
        "taken",
        [],
        [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["p"], ["n"])],
        "other",
        [],
        [helper.make_tensor_value_info("n", TensorProto.FLOAT, None)],
    )
    nodes = [
        *(
            helper.make_node("Constant", [], [name], value=constant("", np.asarray(value)))
            for name, value in {"at0": 0, "at1": 1, "two": 2, "four": 4}.items()
        ),
        helper.make_node("SplitToSequence", ["x", "four"], ["s"]),
        helper.make_node("SequenceAt", ["s", "at0"], ["p"]),
        helper.make_node("Shape", ["p"], ["shape"]),
        helper.make_node("Gather", ["shape", "at0"], ["rows"]),
        helper.make_node("Equal", ["rows", "four"], ["alike"]),
        helper.make_node("If", ["alike"], ["b"], then_branch=taken, else_branch=other),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    return model_of(nodes, {"x": [6, 5]}, {"y": None}, [], 17)


@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
def test_the_size_of_a_part_chooses_a_branch_and_parts_are_taken_within_it(simplifier: Any) -> None:
    model = in_branches()
    result, _ = clean(deepcopy(model), {}, simplifier)
    assert not operator_types(result) & (ON_SEQUENCES | {"If"})
    assert same(outputs(model), outputs(result))


def test_who_else_reads_a_sequence_has_its_parts() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "four"], ["s"]),
        helper.make_node("SequenceErase", ["s", "at-1"], ["t"]),
        helper.make_node("ConcatFromSequence", ["t"], ["y"], axis=0),
    ]
    model = of(*nodes)
    result, _ = clean(deepcopy(model), {}, failing)
    assert operator_types(result) >= {"Split", "SequenceConstruct", "SequenceErase"}
    assert "SplitToSequence" not in operator_types(result)
    assert same(outputs(model), outputs(result))


def test_a_place_beyond_and_too_many_parts_stay() -> None:
    model = in_sequence(4, 1, 3)
    assert sequences.sequences_to_tensors(model) == "1 operator on sequences was written by tensors"
    assert operator_types(model) >= {"SequenceConstruct", "SequenceAt"}
    model = in_sequence(1, 1, 0)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = sequences.MOST + 1
    assert sequences.sequences_to_tensors(model) is None


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there_has_no_parts(axis: int) -> None:
    """Of hostile files."""
    assert sequences.sequences_to_tensors(split_at("at0", "at1", by="two", axis=axis)) is None


def test_a_part_at_a_place_that_is_computed_stays_one_of_a_sequence() -> None:
    nodes = [
        helper.make_node("SplitToSequence", ["x", "two"], ["s"]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["place"], to=TensorProto.INT64),
        helper.make_node("SequenceAt", ["s", "place"], ["y"]),
    ]
    model = of(*nodes)
    assert sequences.sequences_to_tensors(model) == "1 operator on sequences was written by tensors"
    assert operator_types(model) & ON_SEQUENCES == {"SequenceConstruct", "SequenceAt"}


@pytest.mark.mutation
def test_parts_of_even_lengths_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequences._Tensors, "_lengths", lambda *_: [3, 3, 3])
    model = in_sequence(4, 1, 0, 2)
    result, _ = clean(deepcopy(model), {}, failing)
    assert not same(outputs(model), outputs(result))


@pytest.mark.mutation
def test_parts_in_another_order_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sequences._Tensors._split

    def turned(self: Any, node: NodeProto, parts: Parts) -> list[NodeProto]:
        nodes = right(self, node, parts)
        self._of[node.output[0]].reverse()
        return nodes

    monkeypatch.setattr(sequences._Tensors, "_split", turned)
    model = chunked()
    assert not same(outputs(model), outputs(clean(deepcopy(model), {})[0]))
