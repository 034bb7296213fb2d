"""Resizes in the one form that TVM reads, and a refusal of those that it would compute otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute, called, set_attributes, told
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD

REGION, SCALES, SIZES = 1, 2, 3
"""Places of the inputs that say what is resized, of where each axis begins and then of where it ends, and how large it gets."""
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
        _refuse_ignored(node)
    written = sum(_write_axes(node, weights, shapes) for node in nodes)
    return told(written, "Resize got the sizes of all its axes", "Resizes got the sizes of all their axes")


def resized_by_sizes(model: ModelProto) -> str | None:
    """Scales become the sizes that they make: TVM knows sizes alone, and of 160 by 0.9 it would make 143, ONNX Runtime 144. Of
    whole pixels half_pixel_symmetric is half_pixel. Raises NetworkError for what TVM would compute otherwise."""
    nodes = _resizes(model)
    if not nodes:
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)
    for node in nodes:
        _refuse_axes(node, shapes)
        _refuse_parts_of_pixels(node, weights, shapes)
        if attribute(node, "coordinate_transformation_mode") == b"half_pixel_symmetric":
            set_attributes(node, coordinate_transformation_mode=b"half_pixel")
        made = sizes_of(shapes, node.output[0])
        if made and any(node.input[SCALES : SCALES + 1]):
            sized(node, made, weights)
    return None


def sized(node: NodeProto, made: Sequence[int], weights: Weights) -> None:
    """Gives it the sizes that it makes, in place of its scales."""
    of_region = attribute(node, "coordinate_transformation_mode") == b"tf_crop_and_resize"
    region = [*node.input, ""][REGION] if of_region else ""
    node.input[1:] = [region, "", weights.put(f"{node.output[0]}__made", np.asarray(made, np.int64))]


def is_resize(node: NodeProto) -> bool:
    """Of ONNX's own operators."""
    return bool(node.op_type == "Resize" and node.domain in STANDARD)


def _resizes(model: ModelProto) -> list[NodeProto]:
    return [node for node in model.graph.node if is_resize(node)]


def _refuse_counted(node: NodeProto, weights: Weights) -> None:
    if any(name and name not in weights for name in node.input[SCALES:]):
        reason = "how large its result is depends on values, and sizes are fixed here"
        raise NetworkError(called(node), reason, "export it with constant scales or sizes")


def _refuse_ignored(node: NodeProto) -> None:
    if attribute(node, "antialias", 0):
        raise NetworkError(called(node), "TVM resizes without antialiasing", "export it with antialias=False")
    if (policy := attribute(node, "keep_aspect_ratio_policy", b"stretch")) != b"stretch":
        kept = f"its sizes depend on keep_aspect_ratio_policy {policy.decode()!r}"
        raise NetworkError(called(node), kept, "export it with the sizes that come out")


def _refuse_axes(node: NodeProto, shapes: Mapping[str, TensorShape]) -> None:
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
    shape = shapes.get(node.input[0])
    given = node.input[SCALES] if len(node.input) > SCALES else ""
    by_size = attribute(node, "coordinate_transformation_mode", b"half_pixel") == b"align_corners"
    if by_size or given not in weights or shape is None or shape.static is None:
        return
    for size, scale in zip(shape.static, weights.get(given), strict=True):
        made = size * scale
        if made - math.floor(made) > NEARLY:  # of 31.9992 pixels 31 are made
            reason = f"{size} times its scale {scale:g} is no whole number of pixels, and TVM knows sizes only"
            raise NetworkError(called(node), reason, "export it with sizes, or give inputs of another size")
