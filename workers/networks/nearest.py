"""Resizes to the nearest pixel take the pixels that ONNX Runtime takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from workers.networks.graph import Array, Parts, Weights, attribute, rewrite, set_attributes, told
from workers.networks.resizing import SCALES, is_resize, sized
from workers.networks.shape import TensorShape, sizes_of
from workers.networks.shapes import tensor_shapes

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
_OTHERS = [(mode, rounding) for mode in (b"asymmetric", HALF, ALIGNED) for rounding in _ROUNDINGS]
"""Forms that may take the same pixels without halfway places: of 1.5 times as many half_pixel has some, asymmetric none."""
RANKS = (3, 4, 5)
"""Of the tensors that TVM resizes, along what stands behind batch and channels."""
MOST = 1 << 24
"""Pixels of an axis: up to here float32 counts each."""


class _Axis(NamedTuple):
    """How many pixels one has and gets, and by which scale."""

    size: int
    made: int
    scale: np.float32


def nearest_by_places(model: ModelProto) -> str | None:
    """A Resize to the nearest pixel becomes Gathers of constant places where TVM would take others, and stays, told its sizes,
    where it takes the same, through which a layout passes. Both count in float32, ONNX Runtime by the scale and TVM by the
    sizes, and a place between two pixels falls either way. One of a region stays what it is."""
    if not any(is_nearest(node) for node in model.graph.node):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def gathered(node: NodeProto) -> list[NodeProto]:
        given = _scales(node)
        axes = _axes(node, shapes, weights.get(given) if given else None) if is_nearest(node) else []
        if not axes:
            return []
        if all(axis.size == axis.made for axis in axes):
            return [helper.make_node("Identity", node.input[:1], node.output)]
        form = _form(node)
        places = [_places(axis, *form) for axis in axes]
        alike = (other for other in (form, *_OTHERS) if _all_same(axes, places, *other))
        if other := next(alike, None):
            if other != form:
                set_attributes(node, coordinate_transformation_mode=other[0], nearest_mode=other[1])
            sized(node, [axis.made for axis in axes], weights)
            return []
        parts, last = Parts(node.output[0], weights), node.input[0]
        for number, (axis, at) in enumerate(zip(axes, places, strict=True)):
            if not _is_whole(axis, at):
                last = parts.add("Gather", f"along_{number}", last, parts.numbers("places", at), axis=number)
        return parts.all()

    written = rewrite(model.graph, gathered)
    return told(written, "Resize was written with its places", "Resizes were written with their places")


def is_nearest(node: NodeProto) -> bool:
    """Whether it is a Resize to the nearest pixel."""
    return is_resize(node) and attribute(node, "mode", b"nearest") == b"nearest"


def takes_others(node: NodeProto, shapes: Mapping[str, TensorShape], constants: Mapping[str, TensorProto]) -> bool:
    """Whether TVM takes other pixels of a Resize to the nearest than ONNX Runtime, or may: where sizes or scales are not known,
    and of a region."""
    given = _scales(node)
    if given and given not in constants:
        return True
    axes = _axes(node, shapes, np.asarray(numpy_helper.to_array(constants[given])) if given else None)
    return not axes or not _all_same(axes, [_places(axis, *_form(node)) for axis in axes], *_form(node))


def _scales(node: NodeProto) -> str:
    """What gives them; "" where it goes by sizes."""
    return "".join(node.input[SCALES : SCALES + 1])


def _form(node: NodeProto) -> tuple[bytes, bytes]:
    """How it finds a place, and how that is rounded."""
    mode = attribute(node, "coordinate_transformation_mode", HALF)
    return mode, attribute(node, "nearest_mode", b"round_prefer_floor")


def _axes(node: NodeProto, shapes: Mapping[str, TensorShape], scales: Array | None) -> list[_Axis]:
    """Not any where sizes are not known, or there is nothing, or too much, or where its form has no rule here."""
    mode, rounding = _form(node)
    before, after = sizes_of(shapes, node.input[0]), sizes_of(shapes, node.output[0])
    if mode not in _HALVES or rounding not in _ROUNDINGS or not before or len(before) != len(after):
        return []
    sizes, made = np.asarray(before, np.float32), np.asarray(after, np.float32)
    if not min(*before, *after) or max(*before, *after) > MOST:
        return []
    if scales is None:
        scales = made / sizes
    elif len(scales) != len(sizes) or not np.array_equal(np.floor(scales * sizes), made):
        return []
    return [_Axis(*axis) for axis in zip(before, after, scales, strict=True)]


def _all_same(axes: Sequence[_Axis], places: Sequence[Array], mode: bytes, rounding: bytes) -> bool:
    """Whether TVM takes these of a picture, and ONNX Runtime too where it goes by sizes."""
    kept = len(axes) in RANKS and all(_is_whole(axis, at) for axis, at in zip(axes[:2], places[:2], strict=True))
    return kept and all(_same(axis, mode, rounding, at) for axis, at in zip(axes[2:], places[2:], strict=True))


def _is_whole(axis: _Axis, places: Array) -> bool:
    """Whether they are all that there are, as they lie."""
    return np.array_equal(places, np.arange(axis.size))


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
    """The same along one axis."""
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
