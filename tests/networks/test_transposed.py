"""Transposed convolutions compute the same as convolutions of pixels that are next to each other."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn, one
from tests.networks.test_clean import failing, outputs, same
from tests.zoo import constant, model_of
from workers.networks import transposed
from workers.networks.clean import clean
from workers.networks.flops import flops_by_type
from workers.networks.shapes import tensor_shapes
from workers.networks.transposed import transposed_convolutions_to_convolutions

WRITTEN = "1 transposed convolution was written as another"


def kinds(model: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def of(sizes: list[int], kernel: list[int], channels: int = 3, bias: bool = True, **attributes: Any) -> ModelProto:
    """Of a batch of two with four channels."""
    given = (drawn(4, channels, *kernel), *([drawn(channels, seed=1)] if bias else []))
    return one("ConvTranspose", [2, 4, *sizes], 17, *given, **attributes)


FORMS: dict[str, tuple[list[int], list[int], dict[str, Any]]] = {
    "of a U-Net": ([5, 7], [2, 2], {"strides": [2, 2]}),
    "of a generator": ([5, 7], [4, 4], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "of an odd kernel": ([5, 7], [3, 3], {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "that leaves pixels out": ([5, 7], [2, 3], {"strides": [4, 5]}),
    "of strides apart": ([5, 7], [5, 3], {"strides": [3, 1], "pads": [2, 0, 1, 1]}),
    "without a stride": ([5, 7], [3, 3], {"pads": [1, 1, 1, 1]}),
    "of one pixel": ([1, 1], [4, 4], {"pads": [1, 0, 0, 1]}),
    "of one pixel, more added": ([1, 1], [3, 3], {"strides": [4, 4], "output_padding": [3, 2]}),
    "of one row": ([1, 6], [3, 3], {"strides": [2, 2]}),
    "that cuts much": ([6, 6], [6, 6], {"strides": [2, 2], "pads": [4, 3, 2, 4]}),
    "of a signal": ([11], [16], {"strides": [8], "pads": [4, 4]}),
    "of a volume": ([3, 4, 5], [2, 3, 2], {"strides": [2, 1, 3], "pads": [0, 1, 0, 0, 0, 1]}),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", list(FORMS))
def test_they_compute_what_they_computed(name: str, bias: bool) -> None:
    sizes, kernel, attributes = FORMS[name]
    model = of(sizes, kernel, bias=bias, **attributes)
    before = outputs(deepcopy(model))
    assert transposed_convolutions_to_convolutions(model) == WRITTEN
    assert kinds(model)["Conv"] == 1
    assert not kinds(model)["ConvTranspose"]
    assert same(before, outputs(model))


@pytest.mark.mutation
@pytest.mark.parametrize("name", ["of a generator", "of a volume"])
def test_a_kernel_that_is_not_turned_round_computes_something_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, kernel, attributes = FORMS[name]
    model = of(sizes, kernel, **attributes)
    before = outputs(deepcopy(model))
    monkeypatch.setattr(transposed.np, "flip", lambda values, axes: values)
    transposed_convolutions_to_convolutions(model)
    assert not same(before, outputs(model))


@pytest.mark.parametrize(("kernel", "times"), [(2, 1), (4, 1.25), (3, 1.8)])
def test_nothing_is_multiplied_between_pixels(kernel: int, times: float) -> None:
    """Beside a kernel filled up to its stride, and a border."""
    model = of([16, 16], [kernel, kernel], strides=[2, 2])
    wanted = 2 * 2 * 16 * 16 * 4 * 3 * kernel**2
    transposed_convolutions_to_convolutions(model)
    assert wanted <= sum(flops_by_type(model, tensor_shapes(model)).values()) <= 1.15 * times * wanted


@pytest.mark.parametrize(
    "attributes",
    [
        {"group": 2},
        {"dilations": [2, 1]},
        {"auto_pad": "SAME_UPPER"},
        {"output_shape": [9, 13]},
        {"strides": [7, 8]},
    ],
)
def test_others_stay(attributes: dict[str, Any]) -> None:
    """The last one's kernel would be filled with six times as many zeros."""
    model = of([5, 7], [3, 3], bias=False, **{"strides": [2, 2], **attributes})
    assert transposed_convolutions_to_convolutions(model) is None
    assert kinds(model) == {"ConvTranspose": 1}


def test_one_whose_kernel_is_read_stays() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"])
    model = model_of([node], {"x": [1, 4, 5, 5], "w": [4, 3, 2, 2]}, {"y": None}, [])
    assert transposed_convolutions_to_convolutions(model) is None


def test_what_is_normalised_behind_one_is_part_of_its_kernel() -> None:
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"]),
    ]
    weights = [constant("w", drawn(4, 3, 2, 2)), constant("v", np.abs(drawn(3)) + 1)]
    weights += [constant(name, drawn(3, seed=place)) for place, name in enumerate("sbm")]
    model = model_of(nodes, {"x": [1, 4, 5, 5]}, {"y": None}, weights)
    result, report = clean(deepcopy(model), {}, failing)
    assert same(outputs(model), outputs(result))
    assert {"1 BatchNormalization was folded into a convolution", WRITTEN} <= set(report)
    assert kinds(result) == {"Conv": 1, "Reshape": 2, "Transpose": 3}
