"""Sums by Einstein's convention compute the same as matrix products."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.networks.test_clean import outputs, same
from tests.zoo import constant, model_of
from workers.networks import einsum
from workers.networks.einsum import einsums_to_products, einsums_to_transpositions
from workers.networks.graph import Parts, operator_types

SIZES = {"b": 2, "g": 3, "h": 4, "i": 5, "j": 6, "k": 7}
WRITTEN = "1 Einsum was written as a matrix product"


def of(equation: str, **sizes: int) -> ModelProto:
    """Of an input and a constant, of the sizes above by letter."""
    extent = {**SIZES, **sizes}
    left, right, *_ = equation.replace("->", ",").replace(" ", "").lower().split(",")
    shapes = [[extent[letter] for letter in term] for term in (left, right)]
    node = helper.make_node("Einsum", ["x", "w"], ["e"], equation=equation)
    nodes = [node, helper.make_node("Relu", ["e"], ["y"])]
    return model_of(nodes, {"x": shapes[0]}, {"y": None}, [constant("w", drawn(*shapes[1]))], 17)


EQUATIONS = [
    "bij,jk->bik",
    "B G H I K, B G H J K -> B G H I J",
    "bghij,bghjk->bghik",
    "bhi,bhj->bij",
    "bihk,bjhk->bhij",
    "bik,bjk->jib",
    "ij,j->i",
    "i,ij->j",
    "ijk,kj->i",
]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_they_compute_what_they_computed(equation: str) -> None:
    model = of(equation)
    before = outputs(deepcopy(model))
    assert einsums_to_products(model) == WRITTEN
    assert "MatMul" in operator_types(model)
    assert "Einsum" not in operator_types(model)
    assert same(before, outputs(model))


@pytest.mark.parametrize(
    ("equation", "shape"),
    [("...ij,...kj->...ik", [2, 5, 4]), ("...ij,jk->...ik", [4, 3]), ("...ij,bjk->b...ik", [2, 4, 3])],
)
def test_axes_that_are_not_named_are_told_by_the_sizes(equation: str, shape: list[int]) -> None:
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)
    model = model_of([node], {"x": [2, 3, 4]}, {"y": None}, [constant("w", drawn(*shape))], 17)
    before = outputs(deepcopy(model))
    assert einsums_to_products(model) == WRITTEN
    assert same(before, outputs(model))


@pytest.mark.parametrize("equation", ["...ij->...ji", "bij->jbi", "b...->...b"])
def test_axes_in_another_order_are_a_transposition(equation: str) -> None:
    node = helper.make_node("Einsum", ["x"], ["y"], equation=equation)
    model = model_of([node], {"x": [2, 3, 4]}, {"y": None}, [], 17)
    before = outputs(deepcopy(model))
    assert einsums_to_transpositions(model) == "1 Einsum was written as a transposition"
    assert operator_types(model) == {"Transpose"}
    assert same(before, outputs(model))


@pytest.mark.parametrize("equation", ["bij->bi", "bii->bi", "bij"])
def test_sums_and_diagonals_are_no_transposition(equation: str) -> None:
    node = helper.make_node("Einsum", ["x"], ["y"], equation=equation)
    assert einsums_to_transpositions(model_of([node], {"x": [2, 4, 4]}, {"y": None}, [])) is None


def test_what_needs_no_other_shape_is_given_none() -> None:
    """So that what looks for a Softmax of a product finds it."""
    model = of("bghik,bghjk->bghij")
    einsums_to_products(model)
    assert [node.op_type for node in model.graph.node] == ["Transpose", "MatMul", "Relu"]


@pytest.mark.parametrize(
    "equation", ["bi,bi->bi", "bij,bk->bik", "ii,ij->ij", "bij,jk", "...ii,ij->...ij", "bij,jk->bk"]
)
def test_others_stay(equation: str) -> None:
    """What sums nothing up, sums what is of one tensor alone, takes a diagonal, or leaves its result or axes to be guessed."""
    model = model_of(
        [helper.make_node("Einsum", ["x", "w"], ["y"], equation=equation)], {"x": [4, 4], "w": [4, 4]}, {"y": None}, []
    )
    assert einsums_to_products(model) is None
    assert operator_types(model) == {"Einsum"}


def test_one_of_three_tensors_stays() -> None:
    node = helper.make_node("Einsum", ["x", "w", "w"], ["y"], equation="ij,jk,kl->il")
    model = model_of([node], {"x": [4, 4]}, {"y": None}, [constant("w", drawn(4, 4))])
    assert einsums_to_products(model) is None


@pytest.mark.mutation
def test_axes_that_are_not_turned_compute_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of square matrices, which no shape tells apart."""
    model = of("bij,kj->bik", i=4, j=4, k=4)
    before = outputs(deepcopy(model))
    right = Parts.add

    def unturned(self: Parts, kind: str, part: str, *inputs: str, **attributes: Any) -> str:
        if kind == "Transpose":
            attributes["perm"] = sorted(attributes["perm"])
        return right(self, kind, part, *inputs, **attributes)

    monkeypatch.setattr(einsum.Parts, "add", unturned)
    assert einsums_to_products(model) == WRITTEN
    assert not same(before, outputs(model))


def test_sizes_that_do_not_agree_stay() -> None:
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation="ij,jk->ik")
    model = model_of([node], {"x": [4, 1]}, {"y": None}, [constant("w", np.ones((3, 2), np.float32))])
    assert einsums_to_products(model) is None
