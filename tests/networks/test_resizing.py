"""Forms of Resize that TVM would compute as another."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, helper

from tests.networks.forms import floats, integers, one
from tests.zoo import constant, model_of
from workers.networks.clean import clean
from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute
from workers.networks.nearest import _HALVES, nearest_by_places
from workers.networks.shapes import tensor_shapes

IMAGE, WIDE = [1, 4, 7, 9], [1, 4, 24, 24]


@pytest.mark.parametrize(
    ("inputs", "attributes", "words"),
    [
        ((None, floats(1, 1, 2, 2)), {"mode": "linear", "antialias": 1}, "antialias"),
        ((None, None, integers(14, 14)), {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}, "not_larger"),
        ((None, floats(1, 1, 0.5, 1)), {"mode": "linear"}, "7 times its scale 0.5"),
        ((None, floats(1, 2, 2, 1)), {"mode": "linear"}, r"\[1, 8, 14, 9\] of \[1, 4, 7, 9\].* channels second"),
        ((None, None, integers(2, 4, 7, 9)), {"mode": "linear"}, r"\[2, 4, 7, 9\] of \[1, 4, 7, 9\]"),
        (
            (None, None, integers(1, 4, 14, 1)),
            {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
            r"aligns the corners of \[1, 4, 14, 1\]",
        ),
        ((None, None, integers(8, 14)), {"axes": [1, 2], "mode": "linear"}, r"\[1, 8, 14, 9\] of \[1, 4, 7, 9\]"),
    ],
)
def test_what_tvm_would_compute_otherwise_is_refused_by_name(inputs: Any, attributes: Any, words: str) -> None:
    model = one("Resize", IMAGE, 19, *inputs, **attributes)
    with pytest.raises(NetworkError, match=words) as caught:
        clean(model, {}, simplifier=lambda model: model)
    assert "the one" in str(caught.value)


def test_parts_of_pixels_are_taken_where_corners_are_aligned() -> None:
    """By sizes and by scales these are the same."""
    aligned = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    clean(one("Resize", IMAGE, 18, None, floats(1, 1, 0.5, 1), **aligned), {}, simplifier=lambda model: model)


@pytest.mark.parametrize("scale", [1.5, 2.0, 4 / 3])
def test_scales_that_make_whole_pixels_are_taken(scale: float) -> None:
    clean(one("Resize", WIDE, 18, None, floats(1, 1, scale, scale), mode="linear"), {}, simplifier=lambda model: model)


def test_a_pixel_that_a_scale_nearly_makes_is_not_made() -> None:
    """Of 31.9992 pixels 31 are."""
    model = one("Resize", WIDE, 18, None, floats(1, 1, 1.3333, 1.3333), mode="linear")
    with pytest.raises(NetworkError, match=r"24 times its scale 1\.3333 is no whole number of pixels"):
        clean(model, {}, simplifier=lambda model: model)


def sizes_given(node: NodeProto, model: ModelProto) -> list[int]:
    """In place of scales."""
    assert not node.input[2]
    return list(Weights(model.graph).get(node.input[3]).tolist())


@pytest.mark.parametrize(
    "inputs", [(None, floats(2, 3)), (None, None, integers(14, 27))], ids=["by scales", "by sizes"]
)
def test_some_axes_become_all(inputs: Any) -> None:
    model, report = clean(
        one("Resize", IMAGE, 18, *inputs, axes=[2, 3], mode="linear"), {}, simplifier=lambda model: model
    )
    (node,) = model.graph.node
    assert attribute(node, "axes") is None
    assert sizes_given(node, model) == [1, 4, 14, 27]
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
    model, report = clean(
        behind_a_quantised_sum(None, floats(2, 3), axes=[2, 3], mode="linear"), {}, simplifier=lambda model: model
    )
    (node,) = [node for node in model.graph.node if node.op_type == "Resize"]
    assert sizes_given(node, model) == [1, 4, 14, 27]
    assert "1 Resize got the sizes of all its axes" in report


def test_parts_of_pixels_are_refused_behind_quantised_operators_too() -> None:
    with pytest.raises(NetworkError, match=r"7 times its scale 0\.5"):
        clean(behind_a_quantised_sum(None, floats(1, 1, 0.5, 1), mode="linear"), {}, simplifier=lambda model: model)


NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
MODES = [
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
]
SCALES = [1.2, 0.6, 1.1, 0.9, 1.5, 2.0, 3.0, 0.5, 1 / 3, 4 / 3, 2.4]


def nearest(shape: list[int], *given: Any, **attributes: Any) -> ModelProto:
    if attributes.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":  # which newer sets do not have
        inputs = [floats() if values is None else values for values in (None, *given)]
        return one("Resize", shape, 11, *inputs, mode="nearest", **attributes)
    return one("Resize", shape, 19, None, *given, mode="nearest", **attributes)


def kinds(model: ModelProto) -> list[str]:
    return [node.op_type for node in clean(model, {}, simplifier=lambda model: model)[0].graph.node]


def pixels(model: ModelProto) -> Any:
    """Which a network of one input takes, told by their numbers."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return session.run(None, {given.name: np.arange(np.prod(given.shape), dtype=np.float32).reshape(given.shape)})[0]


def as_they_were(model: ModelProto) -> bool:
    before = pixels(model)
    return np.array_equal(before, pixels(clean(model, {}, simplifier=lambda model: model)[0]))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(1, 300), st.sampled_from(SCALES) | st.floats(0.375, 3, width=32), st.booleans(),
    st.sampled_from(MODES), st.sampled_from(NEAREST),
)  # fmt: skip
def test_nearest_pixels_are_those_of_onnx_runtime(size: int, scale: float, by_size: bool, mode: str, to: str) -> None:
    """Along two axes, of which the second gets a quarter more."""
    made = max(1, int(size * scale))
    sized = [None, integers(1, 1, made, 5)] if by_size else [floats(1, 1, scale if size * scale >= 1 else 1, 1.25)]
    assert as_they_were(nearest([1, 1, size, 4], *sized, coordinate_transformation_mode=mode, nearest_mode=to))


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("name", "other", "size", "scale", "to"),
    [
        ("_NEARLY", {}, 40, 1.2, "round_prefer_ceil"),
        ("_same", lambda *_: True, 41, 1.2, "round_prefer_ceil"),
        ("_HALVES", _HALVES | {b"asymmetric": (0.5, 0.5)}, 41, 1.2, "floor"),
    ],
    ids=["ties", "sameness", "halves"],
)
def test_places_that_are_counted_otherwise_are_noticed(
    name: str, other: Any, size: int, scale: float, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nearest(
        [1, 1, size, 2], floats(1, 1, scale, 1), coordinate_transformation_mode="asymmetric", nearest_mode=to
    )
    assert as_they_were(deepcopy(model))
    monkeypatch.setattr(f"workers.networks.nearest.{name}", other)
    assert not as_they_were(model)


@pytest.mark.parametrize("scale", [0.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}],
    ids=["as ONNX has it by itself", "as PyTorch writes it"],
)
def test_nearest_pixels_of_whole_scales_stay_a_resize(scale: float, attributes: Any) -> None:
    """Through which a layout passes."""
    assert kinds(nearest([1, 8, 80, 80], floats(1, 1, scale, scale), **attributes)) == ["Resize"]


@pytest.mark.parametrize(
    ("shape", "scales", "attributes"),
    [
        ([1, 4, 7, 9], [1, 2, 2, 1], {}),
        ([1, 4, 8, 8], [1, 1.2, 2, 2], {}),
        ([7, 9], [2, 1.5], {}),
        ([1, 4, 40, 20], [1, 1, 1.2, 1], {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        ([1, 4, 7, 9], [1, 1, 1.1, 1], {"nearest_mode": "floor"}),
    ],
    ids=["channels", "as many channels", "two axes", "TVM's step is another", "a scale that makes none more"],
)
def test_nearest_pixels_that_tvm_has_no_resize_for_are_taken(shape: list[int], scales: Any, attributes: Any) -> None:
    model = nearest(shape, floats(*scales), **attributes)
    assert "Resize" not in kinds(deepcopy(model))
    assert as_they_were(model)


@pytest.mark.parametrize(
    ("scales", "attributes"),
    [
        ([1, 1, 1.5, 1.5], {}),
        ([1, 1, 0.5, 1], {}),
        ([1, 1, 2, 0.12], {"coordinate_transformation_mode": "align_corners"}),
    ],
    ids=["half as many more", "a part of a pixel", "one corner"],
)
def test_nearest_pixels_that_another_form_takes_stay_a_resize_in_it(scales: Any, attributes: Any) -> None:
    model = nearest([1, 4, 7, 9], floats(*scales), **attributes)
    assert kinds(deepcopy(model)) == ["Resize"]
    assert as_they_were(model)


def test_a_rounding_that_nobody_knows_has_no_places() -> None:
    assert nearest_by_places(nearest(IMAGE, floats(1, 1, 1.2, 1), nearest_mode="away")) is None


def test_one_axis_of_more_pixels_than_can_be_counted_has_no_places() -> None:
    assert nearest_by_places(nearest([1, 1, 1, 1], None, integers(1, 1, (1 << 24) + 1, 1))) is None


@pytest.mark.parametrize("scale", [np.nan, np.inf, -1.0, 0.0, 1e30])
def test_scales_that_make_no_pixels_have_no_places(scale: float) -> None:
    """Of hostile files: nothing is counted out for them."""
    model = nearest(IMAGE, floats(1, 1, scale, 1))
    with suppress(NetworkError):
        assert nearest_by_places(model) is None


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_there_are_as_many_pixels_as_onnx_runtime_makes(mode: str) -> None:
    """ONNX itself tells one less."""
    model = one("Resize", [1, 1, 160, 1], 18, None, floats(0.9), axes=[2], mode=mode)
    assert tensor_shapes(model)["y"].static == (1, 1, 144, 1)
    result, _ = clean(deepcopy(model), {}, simplifier=lambda model: model)
    assert all("Resize" != node.op_type or sizes_given(node, result)[2] == 144 for node in result.graph.node)
    assert np.allclose(pixels(model), pixels(result), atol=1e-4)


@pytest.mark.parametrize(("kind", "opset"), [("Resize", 10), ("Upsample", 9)])
def test_older_sets_have_as_many_pixels_too(kind: str, opset: int) -> None:
    model = one(kind, [1, 1, 5, 10], opset, floats(1, 1, 1.4, 1.3), mode="nearest")
    wanted = pixels(model)
    assert tensor_shapes(model)["y"].static == wanted.shape
    assert np.array_equal(wanted, pixels(clean(model, {}, simplifier=lambda model: model)[0]))


def test_one_pixel_of_a_region_is_refused_as_it_was() -> None:
    """What lies outside is no pixel."""
    region = floats(0, 0, 0, 0, 1, 1, 0.5, 0.5)
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "tf_crop_and_resize"}
    with pytest.raises(NetworkError, match=r"7 times its scale 0\.5"):
        clean(one("Resize", IMAGE, 18, region, floats(1, 1, 0.5, 1), **attributes), {}, simplifier=lambda model: model)
