"""Forms of Resize that TVM would compute as another."""

from __future__ import annotations

from typing import Any

import pytest

from tests.networks.forms import floats, integers, one
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute

IMAGE = [1, 4, 7, 9]


@pytest.mark.parametrize(
    ("inputs", "attributes", "words"),
    [
        ((None, floats(1, 1, 2, 2)), {"mode": "linear", "antialias": 1}, "antialias"),
        ((None, None, integers(14, 14)), {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, "not_larger"),
        ((None, floats(1, 1, 0.5, 1)), {"mode": "linear"}, "7 times its scale 0.5"),
        ((None, floats(1, 1, 0.5, 1)), {"mode": "nearest"}, "7 times its scale 0.5"),
    ],
)
def test_what_tvm_would_compute_otherwise_is_refused_by_name(inputs: Any, attributes: Any, words: str) -> None:
    model = one("Resize", IMAGE, 18, *inputs, **attributes)
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


@pytest.mark.parametrize(
    ("inputs", "whole"), [((None, floats(2, 3)), [1, 1, 2, 3]), ((None, None, integers(14, 27)), [1, 4, 14, 27])]
)
def test_some_axes_become_all(inputs: Any, whole: list[int]) -> None:
    model, report = clean(one("Resize", IMAGE, 18, *inputs, axes=[2, 3]), {}, simplifier=lambda model: model)
    (node,) = model.graph.node
    assert attribute(node, "axes") is None
    assert Weights(model.graph).get(node.input[len(inputs)]).tolist() == whole
    assert "1 Resizes got the sizes of all their axes" in report
