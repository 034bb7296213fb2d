"""Normalisations of groups compute the same by statistics of channels."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks import group_normalizations
from workers.networks.clean import clean
from workers.networks.graph import operator_types, prune
from workers.networks.group_normalizations import groups_by_channels
from workers.networks.shapes import tensor_shapes

WRITTEN = "1 normalisation was written by channels"


def normalised(
    kind: str,
    groups: int = 4,
    opset: int = 17,
    rows: list[int] | None = None,
    conv: bool = True,
    area: tuple[int, ...] = (5, 7),
) -> ModelProto:
    """A convolution's image, far from zero, and its normalisation: of each channel, or of groups, by rows or whole."""
    first = helper.make_node("Conv", ["x", "w", "c"], ["i"]) if conv else helper.make_node("Neg", ["x"], ["i"])
    image = [2, 8, *area]
    length = 8 if kind != "rows" and opset != 18 else groups
    weights = [
        constant("w", drawn(8, 8, *[1] * len(area))),
        constant("c", 20 + drawn(8)),
        constant("s", drawn(length, seed=1)),
        constant("b", drawn(length, seed=2)),
    ]
    if kind == "rows":
        nodes = [
            helper.make_node("Reshape", ["i", "r"], ["g"]),
            helper.make_node("InstanceNormalization", ["g", "s", "b"], ["n"], epsilon=1e-3),
            helper.make_node("Reshape", ["n", "whole"], ["h"]),
        ]
        weights += [constant("r", np.asarray(rows or [2, groups, -1])), constant("whole", np.asarray(image))]
    else:
        given = {"num_groups": groups} if kind == "GroupNormalization" else {}
        nodes = [helper.make_node(kind, ["i", "s", "b"], ["h"], epsilon=1e-3, **given)]
    return model_of([first, *nodes, helper.make_node("Relu", ["h"], ["y"])], {"x": image}, {"y": None}, weights, opset)


FORMS = {
    "each channel": lambda: normalised("InstanceNormalization"),
    "groups": lambda: normalised("GroupNormalization", opset=21),
    "groups of one scale": lambda: normalised("GroupNormalization", opset=18),
    "all": lambda: normalised("GroupNormalization", 1, 21),
    "rows": lambda: normalised("rows"),
    "rows of old": lambda: normalised("rows", 2, 13),
    "a row": lambda: normalised("rows", 1),
    "signals": lambda: normalised("InstanceNormalization", area=(9,)),
    "groups of signals": lambda: normalised("rows", area=(9,)),
    "groups of volumes": lambda: normalised("rows", area=(2, 3, 4)),
    "rows of three axes": lambda: normalised("rows", 2, rows=[2, 2, -1, 1]),
}


@pytest.mark.parametrize("name", list(FORMS))
def test_they_compute_what_they_computed(name: str) -> None:
    model = FORMS[name]()
    # ONNX Runtime has no program for one of operator set 18, which the definition's own functions write out.
    before = outputs(deepcopy(model))
    assert groups_by_channels(model) == WRITTEN
    assert not operator_types(model) & {"InstanceNormalization", "GroupNormalization"}
    assert same(before, outputs(model))


def between(kind: str = "Mul", size: tuple[int, ...] = (1,)) -> ModelProto:
    """Arithmetic of one number between rows and their normalisation, on both sides, as quantised networks have it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["i"]),
        helper.make_node("Reshape", ["i", "r"], ["g"]),
        helper.make_node("Round", ["g"], ["g1"]),
        helper.make_node(kind, ["g1", "m"], ["g2"]),
        helper.make_node("InstanceNormalization", ["g2", "s", "b"], ["n"]),
        helper.make_node("Sub", ["m", "n"], ["n1"]),
        helper.make_node("Relu", ["n1"], ["n2"]),
        helper.make_node("Reshape", ["n2", "whole"], ["h"]),
        helper.make_node("Conv", ["h", "w"], ["y"]),
    ]
    weights = [constant("w", 9 * drawn(8, 8, 1, 1)), constant("s", drawn(4, seed=1)), constant("b", drawn(4, seed=2))]
    weights += [
        constant("m", np.abs(drawn(*(size or [1]), seed=3)).reshape(size) + 1),
        constant("r", np.asarray([0, 4, -1])),
    ]
    weights += [constant("whole", np.asarray([2, 8, 5, 7]))]
    return model_of(nodes, {"x": [2, 8, 5, 7]}, {"y": None}, weights)


@pytest.mark.parametrize("kind", ["Mul", "Div", "Add"])
@pytest.mark.parametrize(
    ("size", "shape"), [((1,), (2, 8, 5, 7)), ((), (2, 8, 5, 7)), ((1, 1, 1), (2, 4, 70)), ((1, 4, 1), (2, 4, 70))]
)
def test_arithmetic_between_rows_and_their_normalisation_is_that_of_the_image(
    kind: str, size: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    """That of one number is; what is of each row stays with the rows, and so does what may add axes."""
    model = between(kind, size)
    before = outputs(deepcopy(model))
    assert groups_by_channels(model) == WRITTEN
    assert same(before, outputs(model))
    prune(model)
    shapes = tensor_shapes(model)
    assert {shapes[node.output[0]].static for node in model.graph.node if node.op_type in ("Round", "Relu")} == {shape}


@pytest.mark.mutation
def test_arithmetic_in_another_order_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    model = between()
    before = outputs(deepcopy(model))
    right = group_normalizations._threaded
    monkeypatch.setattr(
        group_normalizations, "_threaded", lambda run, order, w: right(run, [*order[-2::-1], order[-1]], w)
    )
    groups_by_channels(model)
    assert not same(before, outputs(model))


def test_a_size_that_is_found_later_leaves_the_order_alone() -> None:
    """The Reshape behind would stand before what makes its sizes."""
    model = between()
    model.graph.node[7].input[1] = "found"
    model.graph.node.insert(7, helper.make_node("Shape", ["i"], ["found"]))
    before = outputs(deepcopy(model))
    groups_by_channels(model)
    assert same(before, outputs(model))


def test_of_two_normalisations_one_behind_the_other_the_arithmetic_stays_in_order() -> None:
    """What stands between them may be said to be of both."""
    names = iter("cdefghj")
    nodes, name = [helper.make_node("Conv", ["x", "w"], ["i"])], "i"
    for _ in range(2):
        for kind, given in (
            ("Reshape", ["r"]),
            ("Mul", ["m"]),
            ("InstanceNormalization", ["s", "b"]),
        ):
            nodes.append(helper.make_node(kind, [name, *given], [made := next(names)]))
            name = made
    nodes += [
        helper.make_node("Mul", [name, "m"], ["n"]),
        helper.make_node("Reshape", ["n", "whole"], ["y"]),
    ]
    weights = [constant("w", drawn(8, 8, 1, 1)), constant("s", drawn(4, seed=1)), constant("b", drawn(4, seed=2))]
    weights += [constant("m", np.float32(3)), constant("r", np.asarray([0, 4, -1]))]
    weights += [constant("whole", np.asarray([2, 8, 5, 7]))]
    model = model_of(nodes, {"x": [2, 8, 5, 7]}, {"y": None}, weights)
    before = outputs(deepcopy(model))
    groups_by_channels(model)
    assert same(before, outputs(model))


@pytest.mark.mutation
def test_a_scale_of_another_group_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FORMS["rows"]()
    before = outputs(deepcopy(model))
    spread = group_normalizations._by_channel
    monkeypatch.setattr(group_normalizations, "_by_channel", lambda v, g, c: spread(v[::-1], g, c))
    assert groups_by_channels(model) == WRITTEN
    assert not same(before, outputs(model))


def watched() -> ModelProto:
    """The rows that were normalised are an output too."""
    model = normalised("rows")
    model.graph.output.append(helper.make_tensor_value_info("n", 1, None))
    return model


def of_a_generator() -> ModelProto:
    """What is enlarged, and then normalised twice; the rows between are read by both."""
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["i"], strides=[2, 2]),
        helper.make_node("InstanceNormalization", ["i", "s", "b"], ["n"]),
        helper.make_node("Reshape", ["n", "r"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "s", "b"], ["m"]),
        helper.make_node("Reshape", ["m", "whole"], ["h"]),
        helper.make_node("InstanceNormalization", ["h", "s", "b"], ["y"]),
    ]
    weights = [constant("w", drawn(4, 8, 2, 2)), constant("s", drawn(8, seed=1)), constant("b", drawn(8, seed=2))]
    weights += [constant("r", np.asarray([2, 8, -1])), constant("whole", np.asarray([2, 8, 10, 14]))]
    return model_of(nodes, {"x": [2, 4, 5, 7]}, {"y": None}, weights)


def test_each_of_a_row_of_them_is_written_once() -> None:
    model = of_a_generator()
    before = outputs(deepcopy(model))
    assert groups_by_channels(model) == "3 normalisations were written by channels"
    assert same(before, outputs(model))
    result, report = clean(of_a_generator(), {}, failing)
    assert same(before, outputs(result))
    assert {"1 transposed convolution was written as another", "3 normalisations were written by channels"} <= set(
        report
    )


@pytest.mark.parametrize(
    "model",
    [
        lambda: normalised("rows", conv=False),
        lambda: normalised("rows", 8, rows=[1, 8, -1]),
        watched,
    ],
    ids=["no convolution", "rows over images", "read elsewhere"],
)
def test_others_stay(model) -> None:  # type: ignore[no-untyped-def]
    network = model()
    assert groups_by_channels(network) is None
    assert "InstanceNormalization" in operator_types(network)
