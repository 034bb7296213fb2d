"""Forms of Resize that TVM would compute as another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import floats, integers, one
from tests.zoo import constant, model_of
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute

IMAGE, WIDE = [1, 4, 7, 9], [1, 4, 24, 24]


@pytest.mark.parametrize(
    ("inputs", "attributes", "words"),
    [
        ((None, floats(1, 1, 2, 2)), {"mode": "linear", "antialias": 1}, "antialias"),
        ((None, None, integers(14, 14)), {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, "not_larger"),
        ((None, floats(1, 1, 0.5, 1)), {"mode": "linear"}, "7 times its scale 0.5"),
        ((None, floats(1, 1, 0.5, 1)), {"mode": "nearest"}, "7 times its scale 0.5"),
        ((None, floats(1, 2, 2, 1)), {"mode": "nearest"}, r"\[1, 8, 14, 9\] of \[1, 4, 7, 9\].* channels second"),
        ((None, None, integers(2, 4, 7, 9)), {"mode": "linear"}, r"\[2, 4, 7, 9\] of \[1, 4, 7, 9\]"),
        (
            (None, None, integers(1, 4, 14, 1)),
            {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
            r"aligns the corners of \[1, 4, 14, 1\]",
        ),
        (
            (None, None, integers(1, 4, 14, 3)),
            {"nearest_mode": "floor", "coordinate_transformation_mode": "half_pixel_symmetric"},
            "of 9 pixels it makes 3, some at a whole place",
        ),
        ((None, None, integers(8, 14)), {"axes": [1, 2]}, r"\[1, 8, 14, 9\] of \[1, 4, 7, 9\]"),
    ],
)
def test_what_tvm_would_compute_otherwise_is_refused_by_name(inputs: Any, attributes: Any, words: str) -> None:
    model = one("Resize", IMAGE, 19, *inputs, **attributes)
    with pytest.raises(NetworkError, match=words) as caught:
        clean(model, {}, simplifier=lambda model: model)
    assert "the one" in str(caught.value)


@pytest.mark.parametrize(
    ("scale", "attributes"),
    [
        (0.5, {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        (1.5, {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
    ],
)
def test_parts_of_pixels_are_taken_where_they_are_the_same(scale: float, attributes: Any) -> None:
    """By sizes and by scales."""
    clean(one("Resize", IMAGE, 18, None, floats(1, 1, scale, 1), **attributes), {}, simplifier=lambda model: model)


@pytest.mark.parametrize("scale", [1.5, 2.0, 4 / 3])
def test_scales_that_make_whole_pixels_are_taken(scale: float) -> None:
    clean(one("Resize", WIDE, 18, None, floats(1, 1, scale, scale), mode="linear"), {}, simplifier=lambda model: model)


def test_a_pixel_that_a_scale_nearly_makes_is_not_made() -> None:
    """Of 31.9992 pixels 31 are."""
    model = one("Resize", WIDE, 18, None, floats(1, 1, 1.3333, 1.3333), mode="linear")
    with pytest.raises(NetworkError, match=r"24 times its scale 1\.3333 is no whole number of pixels"):
        clean(model, {}, simplifier=lambda model: model)


@pytest.mark.parametrize(
    ("inputs", "whole"), [((None, floats(2, 3)), [1, 1, 2, 3]), ((None, None, integers(14, 27)), [1, 4, 14, 27])]
)
def test_some_axes_become_all(inputs: Any, whole: list[int]) -> None:
    model, report = clean(one("Resize", IMAGE, 18, *inputs, axes=[2, 3]), {}, simplifier=lambda model: model)
    (node,) = model.graph.node
    assert attribute(node, "axes") is None
    assert Weights(model.graph).get(node.input[len(inputs)]).tolist() == whole
    assert "1 Resize got the sizes of all its axes" in report


def behind_a_quantised_sum(*inputs: Any, **attributes: Any) -> ModelProto:
    """A Resize of what ONNX Runtime's own operator makes, of which ONNX knows no sizes."""
    names = [f"w{place}" if values is not None else "" for place, values in enumerate(inputs)]
    stored = ["q", "s", "z"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearAdd", [*stored, *stored, "s", "z"], ["a"], domain="com.microsoft"),
        helper.make_node("DequantizeLinear", ["a", "s", "z"], ["r"]),
        helper.make_node("Resize", ["r", *names], ["y"], name="the one", **attributes),
    ]
    weights = [constant(name, values) for name, values in zip(names, inputs, strict=True) if name]
    weights += [constant("s", np.float32(0.1)), constant("z", np.uint8(128))]
    model = model_of(nodes, {"x": IMAGE}, {"y": None}, weights, 18)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def test_axes_become_all_behind_quantised_operators_too() -> None:
    model, report = clean(behind_a_quantised_sum(None, floats(2, 3), axes=[2, 3]), {}, simplifier=lambda model: model)
    (node,) = [node for node in model.graph.node if node.op_type == "Resize"]
    assert Weights(model.graph).get(node.input[2]).tolist() == [1, 1, 2, 3]
    assert "1 Resize got the sizes of all its axes" in report


def test_parts_of_pixels_are_refused_behind_quantised_operators_too() -> None:
    with pytest.raises(NetworkError, match=r"7 times its scale 0\.5"):
        clean(behind_a_quantised_sum(None, floats(1, 1, 0.5, 1), mode="linear"), {}, simplifier=lambda model: model)
