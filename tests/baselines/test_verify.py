from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from tests.zoo import tiny
from workers.baselines import verify
from workers.baselines.inputs import seeded_inputs
from workers.baselines.session import OnnxRuntimeSession
from workers.baselines.verify import OTHERS, PARTED, Verdict, compare, compare_any, parted
from workers.networks.inspect import inspect_model
from workers.networks.tolerance import HALF, QUANTISED, SINGLE, Tolerance, rounded_anew

Y = {"y": np.random.default_rng(0).standard_normal((1, 8, 8, 4)).astype(np.float32)}


def test_equal_and_nearly_equal_outputs_pass_with_their_figures() -> None:
    verdict = compare({"y": Y["y"] * 1.0005}, Y)
    assert verdict.passed
    assert verdict.outputs[0].difference == pytest.approx(5e-4 * np.abs(Y["y"]).max(), rel=0.01)
    assert json.loads(json.dumps(verdict.to_json()))["passed"] is True


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"y": Y["y"] * 1.01}, "differs"),
        ({"y": Y["y"][..., :3]}, "shape"),
        ({}, "missing"),
        ({**Y, "z": Y["y"]}, "no such output"),
    ],
)
def test_what_differs_fails_with_the_reason(found: dict[str, np.ndarray], words: str) -> None:
    verdict = compare(found, Y)
    assert not verdict.passed
    assert words in verdict.reason


def test_no_outputs_and_a_broken_reference_never_pass() -> None:
    assert not compare({}, {}).passed
    zero = {"y": np.zeros(3)}
    assert compare(zero, zero).passed
    assert not compare({"y": np.full(3, 1e-9)}, zero).passed


SCORES = np.where(np.tri(8, dtype=bool), np.random.default_rng(6).standard_normal((3, 8, 8)), -np.inf)
SCORES[0, 7, 0], SCORES[1, 7, 1] = np.inf, np.nan


def test_what_is_masked_in_the_reference_may_be_and_the_rest_is_compared() -> None:
    verdict = compare({"y": SCORES * 1.0005}, {"y": SCORES})
    assert verdict.passed, verdict.reason
    finite = SCORES[np.isfinite(SCORES)]
    assert verdict.outputs[0].difference == pytest.approx(5e-4 * np.abs(finite).max(), rel=1e-3)
    assert verdict.outputs[0].scale == np.abs(finite).max()
    json.dumps(verdict.to_json(), allow_nan=False)


@pytest.mark.mutation
@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((0, 0, 1), np.inf), ((0, 0, 1), np.nan), ((0, 0, 1), -1e30), ((1, 7, 1), -np.inf), ((1, 7, 1), 0.0),
        ((2, 7, 0), -np.inf), ((2, 7, 0), np.nan),
    ],
)  # fmt: skip
def test_a_mask_in_another_place_or_of_another_kind_is_noticed(place: tuple[int, ...], value: float) -> None:
    broken = SCORES.copy()
    broken[place] = value
    assert "1 of its values, or of the reference's, are not finite" in compare({"y": broken}, {"y": SCORES}).reason


@pytest.mark.mutation
def test_a_wrong_score_beside_a_mask_is_noticed() -> None:
    broken = SCORES.copy()
    broken[2, 5, 5] += 0.1
    assert "differs" in compare({"y": broken}, {"y": SCORES}).reason


def scores(dtype: type, mask: float) -> np.ndarray:
    """Masked by a number instead of infinity."""
    finite = np.random.default_rng(7).standard_normal((3, 8, 8))
    return np.where(np.tri(8, dtype=bool), finite, mask).astype(dtype)


MASKS = [(np.float32, np.finfo(np.float32).min), (np.float32, -1e30), (np.float64, 1e300), (np.float16, -65504.0)]


@pytest.mark.parametrize(("dtype", "mask"), MASKS)
def test_a_finite_mask_is_no_measure_for_the_scores_beside_it(dtype: type, mask: float) -> None:
    wanted = scores(dtype, mask)
    assert compare({"y": wanted}, {"y": wanted}).passed
    verdict = compare({"y": (wanted * dtype(0.9995)).astype(dtype)}, {"y": wanted}, {"y": HALF})
    assert verdict.passed, verdict.reason
    assert verdict.outputs[0].scale == np.abs(wanted[:, np.tri(8, dtype=bool)]).max()


@pytest.mark.mutation
@pytest.mark.parametrize(("dtype", "mask"), MASKS)
def test_a_wrong_score_beside_a_finite_mask_and_a_wrong_mask_are_noticed(dtype: type, mask: float) -> None:
    wanted = scores(dtype, mask)
    for place, value, words in (
        ((2, 5, 5), wanted[2, 5, 5] + dtype(0.1), "differs"),
        ((2, 5, 5), mask, "differs"),
        ((0, 0, 1), 0.0, "1 of its values"),
        ((0, 0, 1), mask * 0.9, "1 of its values"),
        ((0, 0, 1), -mask, "1 of its values"),
    ):
        broken = wanted.copy()
        broken[place] = value
        assert words in compare({"y": broken}, {"y": wanted}, {"y": HALF}).reason


@pytest.mark.mutation
def test_without_a_bound_for_masks_a_wrong_score_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_masked", lambda ref, dtype: ~np.isfinite(ref))
    with pytest.raises(AssertionError):
        test_a_wrong_score_beside_a_finite_mask_and_a_wrong_mask_are_noticed(*MASKS[0])


@pytest.mark.mutation
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_outputs_without_a_finite_value_never_pass(value: float) -> None:
    none = {"y": np.full((2, 3), value)}
    assert "nothing to compare" in compare(none, none).reason


STEPPED = Tolerance(0.0, "", step=0.25, steps=2, share=0.05)
Q = np.random.default_rng(1).integers(-100, 100, 1000) * 0.25


def off(count: int, steps: int) -> Verdict:
    found = Q.copy()
    found[:count] += 0.25 * steps
    return compare({"q": found}, {"q": Q}, {"q": STEPPED})


def test_a_few_elements_may_be_a_quantisation_step_off() -> None:
    verdict = off(50, 1)
    assert verdict.passed
    assert verdict.outputs[0].off == 0.05
    assert verdict.sentence == "q: at most 1 steps off, 5 % of it (allowed: 2 quantisation steps of 0.25, in 5 % of it)"
    assert off(0, 0).outputs[0].off == 0.0
    assert off(50, 2).passed


@pytest.mark.mutation
def test_a_reference_that_any_output_would_match_is_no_reference() -> None:
    """A Softmax over a thousand classes, quantised to 256 steps, is all zeros."""
    flat = {"q": np.zeros(1000)}
    assert "0 quantisation steps, too few" in compare(flat, flat, {"q": STEPPED}).reason


def test_quantised_outputs_may_be_masked_too() -> None:
    steps = Tolerance(0.0, "", step=(0.25, 4.0), steps=2, share=0.5, axis=1)
    wanted = np.random.default_rng(3).integers(-100, 100, (8, 2, 5)) * np.asarray([0.25, 4.0]).reshape(2, 1)
    wanted[:, 0, :2] = -np.inf
    for channel, passes in ((0, False), (1, True)):
        found = wanted.copy()
        found[0, channel, 4] += 4.0
        assert compare({"q": found}, {"q": wanted}, {"q": steps}).passed is passes


def test_channels_have_steps_of_their_own() -> None:
    steps = Tolerance(0.0, "", step=(0.25, 4.0), steps=2, share=0.5, axis=1)
    rng = np.random.default_rng(3)
    wanted = rng.integers(-100, 100, (8, 2, 5)) * np.asarray([0.25, 4.0]).reshape(2, 1)
    for channel, passes in ((0, False), (1, True)):
        found = wanted.copy()
        found[0, channel, 0] += 4.0
        verdict = compare({"q": found}, {"q": wanted}, {"q": steps})
        assert verdict.passed is passes
        assert verdict.outputs[0].steps == (1.0 if passes else 16.0)
        json.dumps(verdict.to_json(), allow_nan=False)


PROBABLE = Tolerance(1.0, "", step=0.2, steps=4, share=1.0, logarithms=True)
LOGITS = np.random.default_rng(4).integers(-30, 30, (2, 1000)) * 0.2


def softmax(logits: np.ndarray) -> dict[str, np.ndarray]:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return {"p": (powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32)}


def test_probabilities_may_be_a_quantisation_step_of_their_exponents_off() -> None:
    noise = np.random.default_rng(5).integers(-3, 4, LOGITS.shape) * 0.2
    verdict = compare(softmax(LOGITS + noise), softmax(LOGITS), {"p": PROBABLE})
    assert verdict.passed, verdict.reason
    assert "steps of 0.2 of its logarithm" in verdict.sentence
    halves = [{"p": softmax(logits)["p"].astype(np.float16)} for logits in (LOGITS + noise, LOGITS)]
    assert compare(*halves, {"p": PROBABLE}).passed


@pytest.mark.mutation
def test_probabilities_of_other_exponents_are_noticed_whatever_their_step() -> None:
    wrong = {
        "a scale": LOGITS * 1.25,
        "an order": LOGITS[:, ::-1],
        "one of them": np.where(np.arange(1000) == LOGITS[0].argmin(), LOGITS + 1.2, LOGITS),
        "nothing at all": np.zeros_like(LOGITS),
    }
    for name, logits in wrong.items():
        assert not compare(softmax(logits), softmax(LOGITS), {"p": PROBABLE}).passed, name
    # That the largest probability alone would not tell: all of these are small.
    assert compare(softmax(wrong["one of them"]), softmax(LOGITS), {"p": Tolerance(np.expm1(0.8), "")}).passed
    flat = softmax(np.zeros_like(LOGITS))
    assert "too few to tell right from wrong" in compare(flat, flat, {"p": PROBABLE}).reason


LABELLED = Tolerance(0.0, "", share=0.01, labels=True)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_])
def test_labels_are_the_same_or_not(kind: type) -> None:
    wanted = (np.arange(1000) % 2).astype(kind)
    for wrong, passes in ((0, True), (10, True), (11, False)):
        found = wanted.copy()
        found[:wrong] = 1 - found[:wrong]
        verdict = compare({"y": found}, {"y": wanted}, {"y": LABELLED})
        assert verdict.passed is passes
        assert verdict.outputs[0].off == wrong / 1000
        json.dumps(verdict.to_json(), allow_nan=False)
    assert "1.1 % of it is another label where 1 % may be" in verdict.reason
    assert not compare({"y": wanted[:1]}, {"y": wanted[1:2]}, {"y": LABELLED}).passed


@pytest.mark.mutation
def test_numbers_of_another_type_are_noticed() -> None:
    assert "its numbers are float64, the reference has float32" in compare({"y": Y["y"].astype(np.float64)}, Y).reason
    labels = {"y": np.arange(10)}
    assert not compare({"y": labels["y"].astype(np.int32)}, labels, {"y": LABELLED}).passed


@pytest.mark.mutation
def test_more_elements_or_more_steps_are_noticed() -> None:
    assert "6 % of its elements" in off(60, 1).reason
    assert "3 quantisation steps" in off(1, 3).reason


def test_the_figures_and_the_tolerance_are_in_the_verdict() -> None:
    plain = json.loads(json.dumps(compare({"y": Y["y"] * 1.0005}, Y).to_json()))
    assert plain["sentence"] == "y: at most 0.05 % of its largest value off (allowed: 0.1 % of the largest value)"
    assert plain["outputs"][0]["tolerance"]["relative"] == 1e-3
    assert compare({"y": Y["y"] * 1.005}, Y, {"y": HALF}).passed


@pytest.mark.mutation
@pytest.mark.parametrize(
    "tolerance", [HALF, QUANTISED, STEPPED, rounded_anew(48)], ids=["half", "quantised", "steps", "dynamic"]
)
def test_swapped_axes_and_dropped_scales_are_noticed_in_every_precision(tolerance: Tolerance) -> None:
    reference = {"y": np.round(Y["y"] * 40) / 4}
    for broken in (reference["y"].transpose(0, 2, 1, 3), reference["y"] * 1.1):
        assert compare(reference, reference, {"y": tolerance}).passed
        assert not compare({"y": broken}, reference, {"y": tolerance}).passed


@pytest.mark.mutation
def test_swapped_axes_are_noticed() -> None:
    assert not compare({"y": Y["y"].transpose(0, 2, 1, 3)}, Y).passed


@pytest.mark.mutation
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_is_noticed(bad: float) -> None:
    broken = Y["y"].copy()
    broken[0, 3, 2, 1] = bad
    assert "not finite" in compare({"y": broken}, Y).reason


def permuted(model: ModelProto, fill: float | None = None) -> tuple[ModelProto, ModelProto]:
    """The network and one whose kernel has its input channels reversed; with `fill` every weight is that number."""
    pair = []
    for order in (slice(None), slice(None, None, -1)):
        copy = ModelProto()
        copy.CopyFrom(model)
        for tensor in copy.graph.initializer:
            values = numpy_helper.to_array(tensor)
            values = values if fill is None else np.full_like(values, fill)
            if values.ndim == 4:
                values = values[:, order]
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(values), tensor.name))
        pair.append(copy)
    return pair[0], pair[1]


@pytest.mark.mutation
@pytest.mark.parametrize(("fill", "noticed"), [(None, True), (0.02, False)], ids=["random weights", "constant weights"])
def test_permuted_weights_are_noticed_only_with_random_ones(zoo_cache: Path, fill: float | None, noticed: bool) -> None:
    good, bad = permuted(onnx.load(tiny(zoo_cache)), fill)
    inputs = seeded_inputs(inspect_model(good), 0)
    reference, found = (OnnxRuntimeSession(m.SerializeToString(), 1).run(inputs) for m in (good, bad))
    assert compare(found, reference).passed is not noticed


BOXES = np.random.default_rng(7).uniform(0, 640, (4, 1000)).astype(np.float32)
CLASSES = np.random.default_rng(8).uniform(0, 0.6, (80, 1000)).astype(np.float32)


def beside_pixels(classes: np.ndarray, tolerance: Tolerance = SINGLE) -> Verdict:
    outputs, reference = ({"y": np.concatenate([BOXES, one])} for one in (classes, CLASSES))
    return compare(outputs, reference, {"y": tolerance})


def test_scores_beside_pixels_are_compared_as_what_they_are() -> None:
    noise = np.random.default_rng(9).standard_normal(CLASSES.shape).astype(np.float32)
    assert beside_pixels(CLASSES + 1e-4 * noise).passed
    few = CLASSES.copy()
    few[:, :6] = 0.5  # 0.6 % of all, and of each class
    assert beside_pixels(few).passed
    of_one = CLASSES.copy()
    of_one[0, :500] = 0.5
    assert "at 4 of axis 0 4" in beside_pixels(of_one).reason


@pytest.mark.mutation
def test_swapped_scores_beside_pixels_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "differ by over 3 % of what they are" in beside_pixels(np.roll(CLASSES, 1, axis=1)).reason
    monkeypatch.setattr(verify, "FEW", 1.0)
    assert beside_pixels(np.roll(CLASSES, 1, axis=1)).passed, "by the largest value alone nobody would notice"


@pytest.mark.parametrize("tolerance", [HALF, QUANTISED, rounded_anew(12)])
def test_scores_that_are_others_beside_pixels_are_noticed_behind_few_bits_too(tolerance: Tolerance) -> None:
    noise = np.random.default_rng(9).standard_normal(CLASSES.shape).astype(np.float32)
    assert beside_pixels(CLASSES * (1 + 0.03 * noise), tolerance).passed
    for wrong in (np.roll(CLASSES, 1, axis=1), np.zeros_like(CLASSES)):
        assert "differ by over 50 % of what they are" in beside_pixels(wrong, tolerance).reason


@pytest.mark.parametrize("tolerance", [HALF, QUANTISED])
def test_normal_numbers_that_are_off_by_what_is_allowed_pass(tolerance: Tolerance) -> None:
    random = np.random.default_rng(10)
    logits = random.standard_normal((1, 1000)).astype(np.float32)
    off = random.uniform(-1, 1, logits.shape).astype(np.float32) * tolerance.relative * np.abs(logits).max()
    assert compare({"y": logits + off}, {"y": logits}, {"y": tolerance}).passed


def test_numbers_beside_a_mask_of_a_billion_are_compared() -> None:
    masked = np.where(np.arange(1000) % 3 == 0, -1e9, Y["y"].ravel()[:1] * np.ones(1000)).astype(np.float32)
    assert compare({"y": masked}, {"y": masked}).passed
    assert not compare({"y": np.where(masked > -1e9, masked + 5, masked)}, {"y": masked}).passed


@pytest.mark.parametrize("mask", [-1e9, -1e4])
def test_moves_that_are_allowed_are_compared_beside_all_those_that_are_not(mask: float) -> None:
    random = np.random.default_rng(11)
    allowed = random.random((1, 4672)) < 0.05
    wanted = np.where(allowed, random.normal(0, 3, allowed.shape), mask).astype(np.float32)
    assert compare({"y": wanted}, {"y": wanted}).passed
    assert "differs by 1 " in compare({"y": np.where(allowed, wanted + 1, wanted)}, {"y": wanted}).reason
    assert "are not finite or a mask" in compare({"y": np.roll(wanted, 1)}, {"y": wanted}).reason


def test_large_numbers_beside_others_that_are_large_are_no_mask() -> None:
    numbers = np.random.default_rng(11).uniform(-5000, 5000, 1000)
    wanted = {"y": np.where(np.arange(1000) % 3 == 0, -20000, numbers).astype(np.float32)}
    assert compare({"y": wanted["y"] * np.float32(1.0005)}, wanted).outputs[0].scale == 20000


FACES = np.random.default_rng(12).uniform(0, 640, (1, 16800, 15)).astype(np.float32)
FACES[..., 14] = np.random.default_rng(13).uniform(0, 0.6, (1, 16800))


@pytest.mark.mutation
def test_one_score_of_zeros_beside_fourteen_coordinates_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = FACES * (np.arange(15) < 14).astype(np.float32)
    assert compare({"y": FACES * np.float32(1.0005)}, {"y": FACES}).passed
    assert "at 14 of axis 2 96.5 % of its elements differ" in compare({"y": broken}, {"y": FACES}).reason
    monkeypatch.setattr(verify, "COLUMN", np.inf)
    assert compare({"y": broken}, {"y": FACES}).passed, "a fifteenth of the elements, most of them right by all of them"


@pytest.mark.mutation
@pytest.mark.parametrize(("size", "alone"), [(1e-3, True), (1e-6, False)])
def test_a_column_of_small_numbers_may_be_rounded_as_the_others_are(
    size: float, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 1e-6 of the largest, whatever it is of themselves."""
    wanted, noise = FACES.copy(), np.random.default_rng(14).standard_normal((1, 16800, 2))
    wanted[..., 14] = 640 * size * noise[..., 0]
    found = wanted.copy()
    found[..., 14] += 640e-6 * noise[..., 1]
    assert compare({"y": found}, {"y": wanted}).passed
    monkeypatch.setattr(verify, "BESIDE", 0.0)
    assert compare({"y": found}, {"y": wanted}).passed is alone


def test_scores_near_zero_may_be_off_by_what_a_quotient_and_a_half_are() -> None:
    """Of a class that is nowhere, 1e-6, beside scores of which the largest is 2e-3."""
    wanted = np.random.default_rng(15).uniform(1e-6, 2e-3, (1, 4, 40, 40)).astype(np.float32)
    wanted[:, 3] = 1e-6
    found = wanted + np.float32(1e-7)
    assert compare({"y": found}, {"y": wanted}).passed


def test_energies_that_are_alike_are_no_mask() -> None:
    """They are all that there is to compare."""
    energies = np.asarray([-23456.0, -23400.0], np.float32)
    assert not compare({"y": energies * np.float32(1.002)}, {"y": energies}).passed
    assert "at most 0.05 %" in compare({"y": energies * np.float32(1.0005)}, {"y": energies}).sentence


@pytest.mark.parametrize(("wanted", "wrong"), [([37.0], [30.0]), ([37.0, -12.0], [30.0, -12.0])])
def test_an_output_of_one_or_two_quantised_numbers_is_compared(wanted: list[float], wrong: list[float]) -> None:
    tolerance = {"y": Tolerance(0.0, "", 0.5, 3, 0.4)}
    reference = {"y": np.asarray(wanted, np.float32)}
    assert compare(reference, reference, tolerance).passed
    assert compare(
        {"y": reference["y"] + np.asarray([0.5, *[0.0] * (len(wanted) - 1)], np.float32)}, reference, tolerance
    ).passed
    assert not compare({"y": np.asarray(wrong, np.float32)}, reference, tolerance).passed


RANKED = {"y": replace(SINGLE, ranked=1)}


def test_rows_of_nearly_the_same_score_may_come_in_either_order() -> None:
    rng = np.random.default_rng(0)
    wanted = {"y": 640 * rng.random((1, 300, 6), np.float32)}
    order = np.arange(300)
    order[[7, 8, 100, 101, 102]] = [8, 7, 102, 100, 101]
    swapped = {"y": wanted["y"][:, order] + 1e-4}
    swapped["y"][:, -1] = 5.0
    assert compare(swapped, wanted, RANKED).passed
    assert not compare(swapped, wanted).passed
    assert "either order" in compare(swapped, wanted, RANKED).sentence


@pytest.mark.parametrize(("first", "passed"), [([1, 0], True), ([999, 1], False), ([4, 3, 2, 1, 0], False)])
def test_of_few_places_two_neighbours_may_change_and_none_be_another(first: list[int], passed: bool) -> None:
    wanted = np.arange(10)
    found = np.asarray([*first, *wanted[len(first) :]])
    assert compare({"y": found}, {"y": wanted}, {"y": replace(SINGLE, labels=True, ranked=0)}).passed is passed


@pytest.mark.parametrize("wrong", ["shuffled", "another few", "scaled", "one column of another row", "infinite"])
def test_rows_that_are_others_are_wrong_in_any_order(wrong: str) -> None:
    rng = np.random.default_rng(0)
    wanted = {"y": 640 * rng.random((1, 300, 6), np.float32)}
    found = wanted["y"].copy()
    if wrong == "shuffled":
        found = rng.permuted(found, axis=1)
    elif wrong == "another few":
        found[:, 40:50] = rng.random((10, 6))
    elif wrong == "scaled":
        found *= 1.01
    elif wrong == "infinite":
        found[:, ::2] = np.inf
    else:
        found[..., 0] = np.roll(found[..., 0], 1)
    assert not compare({"y": found}, wanted, RANKED).passed


@pytest.mark.mutation
def test_rows_from_anywhere_would_let_any_order_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "NEAR", 300)
    monkeypatch.setattr(verify, "MOVED", 1.0)
    wanted = 640 * np.random.default_rng(0).random((1, 300, 6), np.float32)
    assert compare({"y": wanted[:, ::-1].copy()}, {"y": wanted}, RANKED).passed


def test_pixels_that_were_cut_off_may_be_one_off() -> None:
    tolerance = {"y": Tolerance(0.0, "", steps=1, share=1e-3, labels=True)}
    wanted = np.arange(1000).astype(np.uint8)
    assert compare({"y": np.clip(wanted.astype(int) + 1, 0, 255).astype(np.uint8)}, {"y": wanted}, tolerance).passed
    assert not compare({"y": wanted[::-1].copy()}, {"y": wanted}, tolerance).passed
    classes = (wanted % 3).astype(np.uint8)
    assert not compare({"y": np.roll(classes, 1)}, {"y": classes}, tolerance).passed, "so few are classes"


def test_scores_that_a_coarse_sigmoid_cuts_off_are_right() -> None:
    """ONNX Runtime's is a quotient and a half, clipped at 0."""
    x = np.random.default_rng(3).normal(-12, 4, 4000)
    exact = 1 / (1 + np.exp(-x))
    coarse = np.round(exact * 2**25) / 2**25
    assert compare({"y": exact.astype(np.float32)}, {"y": coarse.astype(np.float32)}).passed


def test_two_probabilities_span_too_few_steps() -> None:
    p = {"y": np.asarray([0.53, 0.47], np.float32)}
    tolerance = {"y": Tolerance(0.22, "", 0.05, 4, 1.0, logarithms=True)}
    assert "too few to tell right from wrong" in compare(p, p, tolerance).reason


IN_STEPS = Tolerance(0.0, "", 0.01, 3, 0.4)


def by_any(outputs: Any, reference: Any, other: Any, tolerance: Tolerance) -> Verdict:
    verdict = compare_any(outputs, reference, [other], {"y": tolerance})
    return verdict if verdict.passed else parted(outputs, reference, [(reference, other)], {"y": tolerance})


def by_two(most: int, found: str = "drawn") -> Verdict:
    """Of outputs of 256 steps, where two references are up to so many apart: outputs as far from either, or others."""
    rng = np.random.default_rng(4)
    steps = rng.integers(0, 256, (16, 32, 32))
    drawn = [steps + rng.integers(-most // 2, most // 2 + 1, steps.shape) for _ in range(3)]
    further = drawn[2] + most * (rng.random(steps.shape) < 0.1)
    outputs = {"drawn": drawn[2], "turned": drawn[2][:, ::-1], "further": further, "defined": drawn[1]}
    arrays = [{"y": (0.01 * one).astype(np.float32)} for one in (outputs[found], *drawn[:2])]
    return by_any(*arrays, IN_STEPS)


def test_a_reference_has_two_ways_to_be_right_and_parts_as_far_as_they_do() -> None:
    assert by_two(8, "defined").note == OTHERS[0]
    assert by_two(8).passed
    assert by_two(8).note == PARTED
    assert "allowed: 10 quantisation steps" in by_two(8).sentence
    assert by_two(0).note == ""
    assert compare_any(Y, Y, [], {}).passed


@pytest.mark.mutation
@pytest.mark.parametrize("found", ["turned", "further"])
def test_what_is_further_from_two_references_than_they_from_each_other_is_wrong(
    found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not by_two(8, found).passed
    monkeypatch.setattr(verify, "APART", 3.0)
    assert by_two(8, found).passed is (found == "further"), "which nobody would notice if they might be as far as that"


def by_one(wrong: float) -> Verdict:
    """Two references that are alike but for one of 4,096 elements, 20 steps apart; outputs of which a share is as far off."""
    rng = np.random.default_rng(6)
    steps = rng.integers(0, 200, (4, 1024))
    flipped, found = steps.copy(), np.where(rng.random(steps.shape) < wrong, steps + 20, steps)
    flipped[1, 7] += 20
    return by_any(*({"y": (0.01 * one).astype(np.float32)} for one in (found, steps, flipped)), IN_STEPS)


@pytest.mark.mutation
def test_one_element_that_flips_lets_no_others_differ_by_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_one(0.0005).passed  # a flip of its own
    assert "further off than the references are from each other in 0.0244 %" in by_one(0.3).reason
    monkeypatch.setattr(verify, "TAIL", 1e4)
    assert by_one(0.3).passed, "which nobody would notice if any number of them might"


def test_other_outputs_are_widened_by_what_they_are_told_by() -> None:
    """A number without steps, and labels."""
    rng = np.random.default_rng(5)
    base = rng.standard_normal((8, 500))
    real = [(base + 0.02 * rng.standard_normal(base.shape)).astype(np.float32) for _ in range(3)]
    first, *others = ({"y": one} for one in real)
    assert by_any(first, *others, QUANTISED).note == PARTED
    assert not by_any({"y": real[0][:, ::-1]}, *others, QUANTISED).passed
    labels = Tolerance(0.0, "", share=0.05, labels=True)
    classes = [np.where(rng.random(4000) < 0.1, rng.integers(0, 10, 4000), np.arange(4000) % 10) for _ in range(3)]
    first, *others = ({"y": one} for one in classes)
    assert by_any(first, *others, labels).note == PARTED
    assert not by_any({"y": classes[0][::-1]}, *others, labels).passed
