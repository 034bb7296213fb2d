"""Resizes to the nearest pixel take the pixels that ONNX Runtime takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Parts, Weights, attribute, rewrite, told
from workers.networks.resizing import SCALES, is_resize
from workers.networks.shape import sizes_of
from workers.networks.shapes import set_output_shapes, tensor_shapes

HALF, ALIGNED, SYMMETRIC, SINGLE = b"half_pixel", b"align_corners", b"half_pixel_symmetric", b"pytorch_half_pixel"
_HALVES = {
    b"asymmetric": (0.0, 0.0),
    HALF: (0.5, 0.5),
    b"tf_half_pixel_for_nn": (0.5, 0.0),
    ALIGNED: (0.0, 0.0),
    SYMMETRIC: (0.5, 0.5),
    SINGLE: (0.5, 0.5),
}
"""What is added to a place before it is scaled, and taken off behind that."""
_ROUNDINGS: dict[bytes, Callable[[Array], Array]] = {
    b"round_prefer_floor": lambda at: np.ceil(at - 0.5),
    b"round_prefer_ceil": lambda at: np.floor(at + 0.5),
    b"floor": np.floor,
    b"ceil": np.ceil,
}
_NEARLY = {b"round_prefer_floor": -1e-6, b"round_prefer_ceil": 1e-6}
"""What ONNX Runtime adds before it rounds so."""
_NEARLY_BY_TVM = {b"floor": 1e-5, b"ceil": -1e-5}
"""What TVM adds."""
RANKS = (3, 4, 5)
"""Of the tensors that TVM resizes, along what stands behind batch and channels."""


class _Axis(NamedTuple):
    """How many pixels one has and gets, and by which scale."""

    size: int
    made: int
    scale: np.float32


def nearest_by_places(model: ModelProto) -> str | None:
    """A Resize to the nearest pixel becomes Gathers of constant places where TVM would take others, and stays, told its sizes,
    where it takes the same, through which a layout passes. Both count in float32, ONNX Runtime by the scale and TVM by the
    sizes, and a place between two pixels falls either way. One of a region stays what it is."""
    nodes = [node for node in model.graph.node if is_resize(node)]
    if not any(attribute(node, "mode", b"nearest") == b"nearest" for node in nodes):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def gathered(node: NodeProto) -> list[NodeProto]:
        mode = attribute(node, "coordinate_transformation_mode", HALF)
        rounding = attribute(node, "nearest_mode", b"round_prefer_floor")
        if not is_resize(node) or attribute(node, "mode", b"nearest") != b"nearest" or mode not in _HALVES:
            return []
        axes = _axes(node, sizes_of(shapes, node.input[0]), sizes_of(shapes, node.output[0]), weights)
        if not axes:
            return []
        if all(axis.size == axis.made for axis in axes):
            return [helper.make_node("Identity", node.input[:1], node.output)]
        places = [_places(axis, mode, rounding) for axis in axes]
        kept = len(axes) in RANKS and all(axis.size == axis.made for axis in axes[:2])
        if kept and all(_same(axis, mode, rounding, at) for axis, at in zip(axes[2:], places[2:], strict=True)):
            node.input[1:] = ["", "", weights.put(f"{node.output[0]}__sizes", np.asarray([a.made for a in axes]))]
            return []
        parts, last = Parts(node.output[0], weights), node.input[0]
        for number, (axis, at) in enumerate(zip(axes, places, strict=True)):
            if not np.array_equal(at, np.arange(axis.size)):
                last = parts.add("Gather", f"along_{number}", last, parts.numbers("places", at), axis=number)
        return parts.all()

    written = rewrite(model.graph, gathered)
    set_output_shapes(model)
    return told(written, "Resize was written with its places", "Resizes were written with their places")


def _axes(node: NodeProto, before: tuple[int, ...], after: tuple[int, ...], weights: Weights) -> list[_Axis]:
    """None where sizes are not known, or there is nothing. ONNX multiplies in float64, and finds a pixel less than ONNX Runtime
    in float32: of 160 by 0.9 these are 143 and 144."""
    given = node.input[SCALES] if len(node.input) > SCALES else ""
    if not before or not after or 0 in before:
        return []
    sizes, made = np.asarray(before, np.float32), np.asarray(after, np.float32)
    scales = weights.get(given) if given else made / sizes
    made = scales * sizes if given else made
    if not ((np.abs(made - after) <= 1) & (made >= 1)).all():
        return []
    return [_Axis(*axis) for axis in zip(before, made.astype(int).tolist(), scales, strict=True)]


def _places(axis: _Axis, mode: bytes, rounding: bytes) -> Array:
    """Those that ONNX Runtime 1.31 takes (UpsampleBase), computed in the order and the numbers in which it does."""
    at = np.arange(axis.made, dtype=np.float32)
    before, behind = _HALVES[mode]
    if axis.scale == 1:
        return np.arange(axis.size)
    if mode in (ALIGNED, SINGLE) and axis.made == 1:
        place = at
    elif mode == ALIGNED:
        place = at * np.float32(axis.size - 1) / np.float32(axis.made - 1)
    elif mode == SYMMETRIC:
        whole = np.float32(axis.made) / (axis.scale * np.float32(axis.size))
        middle = np.float32(axis.size) / 2 * (1 - whole)
        place = (float(middle) + (at.astype(float) + before) / float(axis.scale) - behind).astype(np.float32)
    else:
        place = (at + before) / axis.scale - behind
    return _within(axis, _ROUNDINGS[rounding](place.astype(float) + _NEARLY.get(rounding, 0.0)))


def _same(axis: _Axis, mode: bytes, rounding: bytes, places: Array) -> bool:
    """Whether TVM takes these, and ONNX Runtime too where it goes by sizes."""
    if axis.made == 1 and mode in (ALIGNED, SINGLE):
        return mode == SINGLE
    by_sizes = axis._replace(scale=np.float32(axis.made) / np.float32(axis.size))
    of_sizes = _places(by_sizes, HALF if mode == SYMMETRIC else mode, rounding)
    return all(np.array_equal(found, places) for found in (of_sizes, *_by_tvm(axis, mode, rounding)))


def _by_tvm(axis: _Axis, mode: bytes, rounding: bytes) -> Iterator[Array]:
    """What TVM 0.27 takes (topi.image.resize). Of its products and sums each is rounded to float32, or one with the sum behind
    it, as a compiler likes."""
    corners = mode == ALIGNED
    step = float(np.float32(axis.size - corners) / np.float32(axis.made - corners))
    before, behind = _HALVES[mode]
    exact = step * (np.arange(axis.made) + before)
    for product in (exact, exact.astype(np.float32)):
        place = product.astype(float) - behind + _NEARLY_BY_TVM.get(rounding, 0.0)
        for total in (place, place.astype(np.float32)):
            yield _within(axis, _ROUNDINGS[rounding](total))


def _within(axis: _Axis, places: Array) -> Array:
    return np.clip(places, 0, axis.size - 1).astype(np.int64)
