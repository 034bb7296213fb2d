"""What an exporter asks for and is never there is not asked, and is where it may be."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.networks.test_attention import HEADS, KEYS, attending, causal, hidden, masked
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks.clean import clean
from workers.networks.graph import operator_types
from workers.networks.guards import guards_behind_products, guards_without_cause

LEFT_OUT = "1 choice of what is always the same was made"


def guarded(model: ModelProto) -> ModelProto:
    """An attention with zeros in place of NaN, as PyTorch's exporter writes it."""
    (values,) = (node for node in model.graph.node if list(node.input) == ["p", "v"])
    values.input[0] = "g"
    guard = [
        helper.make_node("IsNaN", ["p"], ["n"]),
        helper.make_node("Where", ["n", "zero", "p"], ["g"]),
    ]
    place = list(model.graph.node).index(values)
    nodes = [*model.graph.node[:place], *guard, *model.graph.node[place:]]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(constant("zero", np.float32(0)))
    return model


def hiding(*keys: int, rows: Any = slice(None)) -> Any:
    """A mask that hides keys of these rows by infinity."""
    mask = np.zeros((1, 1, KEYS, KEYS), np.float32)
    mask[:, :, rows, list(keys)] = -np.inf
    return mask


PAST = np.where(causal() < 0, np.float32(-np.inf), np.float32(0))


@pytest.mark.parametrize(
    "between",
    [
        [],
        [("Mul", 0.3)],
        [("Div", 3.0), ("Sub", drawn(KEYS))],
        [("Mul", 0.5), ("Add", drawn(1, HEADS, KEYS, KEYS))],
        [("Add", PAST)],
        [("Add", drawn(1, HEADS, KEYS, KEYS)), ("Add", hiding(3, 4))],
    ],
    ids=["alone", "scaled", "divided", "where each looks", "causal", "masked behind that"],
)
@pytest.mark.parametrize("simplifier", [None, failing], ids=["simplifier", "own passes"])
def test_a_softmax_of_finite_numbers_is_not_asked_for_others(between: Any, simplifier: Any) -> None:
    """Its keys are then as many as vectors take, as without."""
    model = guarded(attending(*between))
    result, report = clean(deepcopy(model), {}, simplifier)
    assert LEFT_OUT in report
    assert "1 attention was given whole vectors of keys" in report
    assert not operator_types(result) & {"IsNaN", "Where"}
    assert same(outputs(model), outputs(result))


@pytest.mark.parametrize(
    "model",
    [
        attending(("Add", hiding(*range(KEYS), rows=5))),
        attending(("Add", hiding(*range(10))), ("Add", hiding(*range(10, KEYS)))),
        attending(("Add", hiding(3)), ("Mul", 0.0)),
        attending(("Add", hiding(3).swapaxes(2, 3)), axis=2),
        attending(("Add", np.where(PAST < 0, np.inf, 0))),
        attending(("Div", 0.0)),
        masked(1, 1, KEYS, KEYS),
        attending(watched="g"),
    ],
    ids=["a whole row", "by two", "times 0", "by query", "infinity", "over nothing", "an input's", "an output"],
)
def test_what_may_be_there_is_asked_for(model: ModelProto) -> None:
    assert guards_without_cause(guarded(model)) is None


@pytest.mark.parametrize("met", [True, False])
def test_what_a_constant_chooses_is_chosen(met: bool) -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("Sin", ["x"], ["s"]),
        helper.make_node("Where", ["c", "e", "s"], ["w"]),
        helper.make_node("Relu", ["w"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 3]}, {"y": None}, [constant("c", np.full((2, 1), met))])
    wanted = outputs(deepcopy(model))
    assert guards_without_cause(model) == LEFT_OUT
    assert operator_types(model) == {"Exp" if met else "Sin", "Relu"}
    assert same(wanted, outputs(model))


@pytest.mark.parametrize("condition", [np.full((3, 2, 3), False), np.asarray([[True], [False]])])
def test_a_choice_that_spreads_or_depends_stays(condition: Any) -> None:
    nodes = [helper.make_node("Where", ["c", "x", "x"], ["w"]), helper.make_node("Relu", ["w"], ["y"])]
    model = model_of(nodes, {"x": [2, 3]}, {"y": None}, [constant("c", condition)])
    assert guards_without_cause(model) is None


def by_mask(model: ModelProto) -> ModelProto:
    """The same asked of the mask, as ONNX defines an Attention."""
    guard = [
        helper.make_node("ReduceMax", ["c0"], ["most"], axes=[-1], keepdims=1),
        helper.make_node("Equal", ["most", "lowest"], ["n"]),
    ]
    nodes = [one for node in model.graph.node for one in (guard if node.op_type == "IsNaN" else [node])]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(constant("lowest", np.float32(-np.inf)))
    return model


@pytest.mark.parametrize("form", [guarded, lambda model: by_mask(guarded(model))], ids=["number", "mask"])
def test_rows_that_an_input_masks_whole_are_zeros_behind_the_product(form: Any) -> None:
    """The Softmax has its keys in whole vectors then."""
    model = form(masked(1, HEADS, KEYS, KEYS))
    wanted = hidden(model)
    assert np.isfinite(wanted).all()
    result, report = clean(deepcopy(model), {}, failing)
    assert "1 attention has zeros for what is masked whole behind its product" in report
    assert "1 attention was given whole vectors of keys" in report
    assert [node.op_type for node in result.graph.node][-2:] == ["Where", "Relu"]
    for found, one in zip(hidden(result), wanted, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.initializer.append(constant("zero", np.float32(1))) or graph.initializer.pop(-2),
        lambda graph: graph.output.append(helper.make_tensor_value_info("g", 1, None)),
        lambda graph: graph.node[-5].attribute[0].CopyFrom(helper.make_attribute("axis", 2)),
        lambda graph: graph.node[-4].input.__setitem__(0, "s0"),
    ],
    ids=["ones", "an output", "by query", "of the scores"],
)
def test_what_is_no_row_of_zeros_stays(change: Any) -> None:
    model = guarded(masked(1, HEADS, KEYS, KEYS))
    nodes = [node.op_type for node in model.graph.node]
    assert nodes[-5:] == ["Softmax", "IsNaN", "Where", "MatMul", "Relu"]
    change(model.graph)
    assert guards_behind_products(model) is None
