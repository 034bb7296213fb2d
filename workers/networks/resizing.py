"""Resizes in the one form that TVM reads, and a refusal of those that it would compute otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.graph import Array, Weights, attribute, called, set_attributes, told
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD

REGION, SCALES, SIZES = 1, 2, 3
"""Places of the inputs that say what is resized, of where each axis begins and then of where it ends, and how large it gets."""
_ROUNDINGS: dict[bytes, Callable[[Array], Array]] = {
    b"round_prefer_floor": lambda at: np.ceil(at - 0.5),
    b"round_prefer_ceil": lambda at: np.floor(at + 0.5),
    b"floor": np.floor,
    b"ceil": np.ceil,
}
NEARLY = 1e-3
"""Of a pixel: scales are written as float32."""


def drop_empty_resize_inputs(model: ModelProto) -> str | None:
    """An input of a Resize that is a constant without values is none: exporters write scales so beside sizes."""
    weights = Weights(model.graph)
    dropped = 0
    for node in _resizes(model):
        for place, name in enumerate(node.input):
            if place and name in weights and not weights.get(name).size:
                node.input[place] = ""
                dropped += 1
    return told(dropped, "empty input of a Resize was dropped", "empty inputs of Resizes were dropped")


def whole_resizes(model: ModelProto) -> str | None:
    """Scales or sizes of some axes become those of all. Raises NetworkError for what TVM ignores."""
    nodes = _resizes(model)
    if not nodes:
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    for node in nodes:
        _refuse_counted(node, weights)
        _refuse_ignored(node, shapes)
    written = sum(_write_axes(node, weights, shapes) for node in nodes)
    for node in nodes:
        _refuse_parts_of_pixels(node, weights, shapes)
        # Of whole pixels both are the same but for what they round, and others are refused by now.
        if attribute(node, "coordinate_transformation_mode") == b"half_pixel_symmetric":
            _refuse_whole_places(node, shapes)
            set_attributes(node, coordinate_transformation_mode=b"half_pixel")
    return told(written, "Resize got the sizes of all its axes", "Resizes got the sizes of all their axes")


def _resizes(model: ModelProto) -> list[NodeProto]:
    return [node for node in model.graph.node if node.op_type == "Resize" and node.domain in STANDARD]


def _refuse_counted(node: NodeProto, weights: Weights) -> None:
    if any(name and name not in weights for name in node.input[SCALES:]):
        reason = "how large its result is depends on values, and sizes are fixed here"
        raise NetworkError(called(node), reason, "export it with constant scales or sizes")


def _refuse_ignored(node: NodeProto, shapes: Mapping[str, TensorShape]) -> None:
    if attribute(node, "antialias", 0):
        raise NetworkError(called(node), "TVM resizes without antialiasing", "export it with antialias=False")
    if (policy := attribute(node, "keep_aspect_ratio_policy", b"stretch")) != b"stretch":
        kept = f"its sizes depend on keep_aspect_ratio_policy {policy.decode()!r}"
        raise NetworkError(called(node), kept, "export it with the sizes that come out")
    before, after = (shape.static if (shape := shapes.get(name)) else None for name in (node.input[0], node.output[0]))
    if before is not None and after is not None and before[:2] != after[:2]:
        reason = f"it makes {list(after)} of {list(before)}, and TVM resizes what stands behind batch and channels only"
        raise NetworkError(called(node), reason, "export it with the channels second")
    aligned = attribute(node, "coordinate_transformation_mode") == b"align_corners"
    if aligned and after is not None and 1 in after[2:]:
        reason = f"it aligns the corners of {list(after)}, and TVM does not where a size is 1"
        raise NetworkError(
            called(node), reason, "export it with align_corners=False, or take the first pixel by a Slice"
        )


def _write_axes(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether some axes had to become all."""
    axes = attribute(node, "axes")
    if axes is None:
        return False
    shape = shapes.get(node.input[0])
    place = SCALES if len(node.input) > SCALES and node.input[SCALES] else SIZES
    region = node.input[REGION]
    if shape is None or shape.static is None or node.input[place] not in weights or (region and region not in weights):
        raise NetworkError(
            called(node), "its axes stand beside sizes or a region that are not constant", "export it without axes"
        )
    given = weights.get(node.input[place])
    whole = np.ones(len(shape.static), given.dtype) if place == SCALES else np.asarray(shape.static, given.dtype)
    whole[list(axes)] = given
    node.input[place] = weights.put(f"{node.output[0]}__whole", whole)
    if region:
        ends = np.repeat([[0], [1]], len(shape.static), axis=1).astype(weights.get(region).dtype)
        ends[:, list(axes)] = weights.get(region).reshape(2, -1)
        node.input[REGION] = weights.put(f"{node.output[0]}__region", ends.reshape(-1))
    set_attributes(node, axes=None)
    return True


def _refuse_parts_of_pixels(node: NodeProto, weights: Weights, shapes: Mapping[str, TensorShape]) -> None:
    """TVM takes the step from the sizes before and behind, ONNX from the scale: they differ where the last pixel is cut off."""
    shape, mode = shapes.get(node.input[0]), attribute(node, "mode", b"nearest")
    given = node.input[SCALES] if len(node.input) > SCALES else ""
    by_size = attribute(node, "coordinate_transformation_mode", b"half_pixel") == b"align_corners"
    if by_size or given not in weights or shape is None or shape.static is None:
        return
    for size, scale in zip(shape.static, weights.get(given), strict=True):
        made = size * scale
        cut = made - math.floor(made) > NEARLY  # of 31.9992 pixels 31 are made
        if cut and not (mode == b"nearest" and _same_pixels(node, size, float(scale))):
            reason = f"{size} times its scale {scale:g} is no whole number of pixels, and TVM knows sizes only"
            raise NetworkError(called(node), reason, "export it with sizes, or give inputs of another size")


def _same_pixels(node: NodeProto, size: int, scale: float) -> bool:
    """Whether the nearest pixels by the scale are those by the sizes."""
    out = max(1, math.floor(size * scale))
    places = np.arange(out)
    rounding = _ROUNDINGS.get(attribute(node, "nearest_mode", b"round_prefer_floor"))
    half = {b"half_pixel": 0.5, b"pytorch_half_pixel": 0.5, b"asymmetric": 0.0}
    shift = half.get(attribute(node, "coordinate_transformation_mode", b"half_pixel"))
    if rounding is None or shift is None:
        return False
    one, other = (np.clip(rounding((places + shift) * step - shift), 0, size - 1) for step in (1 / scale, size / out))
    return bool(np.array_equal(one, other))


def _refuse_whole_places(node: NodeProto, shapes: Mapping[str, TensorShape]) -> None:
    """A place that is a whole number is a little more or less where it is counted from the middle, and another pixel by then;
    not where the scale is a whole number, of which nothing is rounded."""
    mode = attribute(node, "nearest_mode", b"round_prefer_floor")
    before, after = (shape.static if (shape := shapes.get(name)) else None for name in (node.input[0], node.output[0]))
    if attribute(node, "mode", b"nearest") != b"nearest" or mode not in (b"floor", b"ceil") or not (before and after):
        return
    for size, made in zip(before, after, strict=True):
        twice = (2 * np.arange(made) + 1) * size - made  # the places, by 2 * made
        if made % size and not (twice % (2 * made)).all():
            reason = (
                f"of {size} pixels it makes {made}, some at a whole place, of which {mode.decode()!r} may make another"
            )
            raise NetworkError(called(node), reason, "export it with coordinate_transformation_mode='half_pixel'")
