"""Convolutions whose kernel lies in the padding compute the same without the products with that."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper

from tests.networks.forms import drawn, one
from tests.networks.test_clean import outputs, same
from workers.networks import taps
from workers.networks.graph import attribute
from workers.networks.taps import taps_within

WRITTEN = "1 convolution was kept out of its padding"


def of(sizes: list[int], kernel: list[int], rate: int, pad: int | None = None, **attributes: Any) -> ModelProto:
    """At one rate along all axes, padded by that unless `pad` says otherwise, with a bias."""
    count, padding = len(sizes), [rate if pad is None else pad] * 2 * len(sizes)
    given = {"dilations": [rate] * count, "pads": padding, **attributes}
    channels = 4 // given.get("group", 1)
    return one("Conv", [2, 4, *sizes], 17, drawn(6, channels, *kernel), drawn(6, seed=1), **given)


def kinds(model: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


@pytest.mark.parametrize(
    ("sizes", "rate", "attributes", "products"),
    [
        ([7, 6], 6, {}, 3),
        ([7, 7], 6, {}, 9),
        ([9, 5], 4, {"strides": [2, 3]}, 6),
        ([7, 7], 6, {"strides": [2, 2]}, 9),
        ([7], 6, {"strides": [2]}, 3),
        ([9], 7, {}, 3),
        ([5, 4, 6], 4, {}, 9),
        ([7, 7], 6, {"pads": [6, 6, 6, 12]}, 9),
        ([7, 7], 6, {"pads": [5, 6, 7, 6]}, 6),
    ],
)
def test_each_tap_is_a_product_of_what_it_reaches(
    sizes: list[int], rate: int, attributes: dict[str, Any], products: int
) -> None:
    model = of(sizes, [3] * len(sizes), rate, **attributes)
    before = outputs(deepcopy(model))
    assert taps_within(model) == WRITTEN
    assert kinds(model)["Conv"] == products
    assert all(set(attribute(node, "pads", [0])) == {0} for node in model.graph.node if node.op_type == "Conv")
    assert same(before, outputs(model))


@pytest.mark.parametrize(
    ("model", "kernel"),
    [
        (lambda: of([7, 6], [3, 3], 7), [1, 1]),
        (lambda: of([9, 4], [3, 3], 5, group=2), [3, 1]),
        (lambda: of([1, 9], [3, 3], 1), [1, 3]),
        (lambda: of([2, 9], [5, 3], 1, 2), [3, 3]),
    ],
    ids=["one is left", "of groups", "one row", "of a kernel larger than the image"],
)
def test_taps_that_read_nothing_but_padding_go(model: Any, kernel: list[int]) -> None:
    network = model()
    before = outputs(deepcopy(network))
    assert taps_within(network) == WRITTEN
    convolutions = [node for node in network.graph.node if node.op_type == "Conv"]
    assert [attribute(node, "kernel_shape", kernel) for node in convolutions] == [kernel]
    assert same(before, outputs(network))


@pytest.mark.parametrize(
    "model",
    [
        lambda: of([16, 16], [3, 3], 2),
        lambda: of([16, 16], [3, 3], 1, strides=[2, 2]),
        lambda: of([16, 16], [1, 1], 1, 0),
        lambda: of([7, 7], [3, 3], 6, group=2),
    ],
    ids=["most is read", "a border that no window reaches", "one tap", "groups whose taps all read something"],
)
def test_others_stay(model: Any) -> None:
    network = model()
    whole = deepcopy(network)
    assert taps_within(network) is None
    assert network == whole


def test_an_even_kernel_without_a_bias_computes_the_same() -> None:
    model = of([6, 6], [2, 2], 5, 3)
    del model.graph.node[0].input[2]
    before = outputs(deepcopy(model))
    assert taps_within(model) == WRITTEN
    assert same(before, outputs(model))


def of_nothing() -> ModelProto:
    """Both taps read padding alone."""
    return of([2], [2], 4, 2)


def of_many() -> ModelProto:
    return of([7, 7], [9, 9], 2, 8)


def of_a_computed_bias() -> ModelProto:
    model = of([7, 7], [3, 3], 6)
    model.graph.node.insert(0, helper.make_node("Neg", [model.graph.node[0].input[2]], ["negative"]))
    model.graph.node[1].input[2] = "negative"
    return model


@pytest.mark.parametrize("model", [of_nothing, of_many, of_a_computed_bias])
def test_what_cannot_be_written_tap_by_tap_is_computed_as_before(model: Any) -> None:
    network = model()
    before = outputs(deepcopy(network))
    taps_within(network)
    assert kinds(network)["Conv"] == 1
    assert same(before, outputs(network))


def test_whole_numbers_stay_one_product() -> None:
    network = of([7, 7], [3, 3], 6)
    for tensor in network.graph.initializer:
        values = np.rint(np.frombuffer(tensor.raw_data, np.float32) * 100)
        tensor.raw_data = values.astype(np.float32).tobytes()
    assert taps_within(network) is None


@pytest.mark.mutation
def test_a_tap_that_misses_what_it_reaches_computes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    network = of([7, 7], [3, 3], 5)
    before = outputs(deepcopy(network))
    reached = taps._Axis.reached

    def less(axis: Any, tap: int) -> range:
        found = reached(axis, tap)
        return found[1:] if tap == 0 else found

    monkeypatch.setattr(taps._Axis, "reached", less)
    assert taps_within(network) == WRITTEN
    assert not same(before, outputs(network))
