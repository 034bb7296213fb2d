"""Fourier transforms, and columns laid back over an image: ONNX has operators for them, TVM has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from workers.networks.graph import Array, Weights, attribute, operator_types, rewrite, told
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD, opset

TRANSFORMS = frozenset({"Col2Im", "DFT", "STFT"})
LONGEST = 2048
"""Of a transform: as a product its weights grow with the square, 67 MB here. Col2Im's have no more."""
AXIS_AS_INPUT = 20
"""The operator set from which on a DFT reads its axis."""


def transforms_to_products(model: ModelProto) -> str | None:
    """STFT becomes a convolution with its window's waves, DFT a product with the waves, Col2Im a transposed convolution that
    lays each number where it belongs. Those of computed sizes and windows, of others than float32, or longer
    than LONGEST, stay."""
    if not operator_types(model) & TRANSFORMS:
        return None
    shapes, weights, version = tensor_shapes(model), Weights(model.graph), opset(model)

    def written_out(node: NodeProto) -> list[NodeProto]:
        ours = node.op_type in TRANSFORMS and node.domain in STANDARD
        found = shapes.get(node.input[0]) if ours else None
        source = found.static if found is not None and found.dtype == TensorProto.FLOAT else None
        if not source or not all(name in weights for name in node.input[1:] if name):
            return []
        if node.op_type == "DFT":
            return _whole(node, source, weights, version)
        return (_short_time if node.op_type == "STFT" else _laid_back)(node, source, weights)

    rewritten = rewrite(model.graph, written_out)
    return told(rewritten, "transform was written as a product", "transforms were written as products")


def _waves(length: int, places: int, bins: int) -> tuple[Array, Array]:
    """Cosines and sines, `places` x `bins`; places behind `length` count nothing."""
    turns = np.outer(np.arange(places), np.arange(bins)) % length * (2 * np.pi / length)
    inside = np.arange(places)[:, None] < length
    return np.cos(turns) * inside, np.sin(turns) * inside


def _short_time(node: NodeProto, source: Sequence[int], weights: Weights) -> list[NodeProto]:
    given = _given(node, weights)
    window, step = given.get(2), int(given[1].item())
    length = int(given[3].item()) if 3 in given else 0 if window is None else window.size
    if not 0 < length <= min(LONGEST, source[1]) or step < 1 or source[2:] not in ((), (1,)):
        return []
    if window is not None and window.size != length:
        return []
    bins = length // 2 + 1 if attribute(node, "onesided", 1) else length
    cosines, sines = _waves(length, length, bins)
    waves = np.stack([cosines, -sines], 2).reshape(length, 2 * bins).T * (1 if window is None else window)
    frames = (source[1] - length) // step + 1
    name = node.output[0]
    flat, found, turned = (f"{name}__{word}" for word in ("flat", "waves", "turned"))
    kernel = weights.put(f"{name}__kernel", waves[:, None].astype(np.float32))
    return [
        _reshaped(node.input[0], flat, (source[0], 1, source[1]), weights),
        helper.make_node("Conv", [flat, kernel], [found], kernel_shape=[length], strides=[step]),
        helper.make_node("Transpose", [found], [turned], perm=[0, 2, 1]),
        _reshaped(turned, name, (source[0], frames, bins, 2), weights),
    ]


def _whole(node: NodeProto, source: Sequence[int], weights: Weights, version: int) -> list[NodeProto]:
    given, rank = _given(node, weights), len(source)
    axis = attribute(node, "axis", 1) if version < AXIS_AS_INPUT else int(given[2].item()) if 2 in given else -2
    axis, inverse, half = axis % rank, attribute(node, "inverse", 0), attribute(node, "onesided", 0)
    places, parts = source[axis], min(source[-1], 2)
    back = half and inverse
    length = int(given[1].item()) if 1 in given else 2 * (places - 1) if back else places
    if (
        min(places, length) < 1
        or max(places, length) > LONGEST
        or axis == rank - 1
        or (half and bool(inverse) != (parts == 2))
        or (back and places != length // 2 + 1)  # of which ONNX Runtime makes something else than ONNX defines
    ):
        return []
    bins = length // 2 + 1 if half and not inverse else length
    cosines, sines = _waves(length, places, bins)
    if back:
        waves = np.stack([cosines, -sines], 1)[..., None] * _times(length, places)[:, None, None, None]
    else:
        sines = -sines if inverse else sines
        waves = np.stack([np.stack([cosines, -sines], 2), np.stack([sines, cosines], 2)], 1)[:, :parts]
    made = waves.shape[-1]
    scaled = (waves / length if inverse else waves).reshape(places * parts, bins * made).astype(np.float32)
    to_the_end = [*(place for place in range(rank) if place not in (axis, rank - 1)), axis, rank - 1]
    outer = [source[place] for place in to_the_end[:-2]]
    name = node.output[0]
    turned, flat, found, whole = (f"{name}__{word}" for word in ("turned", "flat", "waves", "whole"))
    return [
        helper.make_node("Transpose", [node.input[0]], [turned], perm=to_the_end),
        _reshaped(turned, flat, (*outer, places * parts), weights),
        helper.make_node("MatMul", [flat, weights.put(f"{name}__factors", scaled)], [found]),
        _reshaped(found, whole, (*outer, bins, made), weights),
        helper.make_node("Transpose", [whole], [name], perm=np.argsort(to_the_end).tolist()),
    ]


def _times(length: int, bins: int) -> Array:
    """How often each bin of one side counts for real numbers: twice where the other side has it too."""
    places = np.arange(bins)
    return np.where((places == 0) | (2 * places == length), 1, 2)


def _laid_back(node: NodeProto, source: Sequence[int], weights: Weights) -> list[NodeProto]:
    image, block = (weights.get(name).tolist() for name in node.input[1:3])
    ones = [1] * len(image)
    strides, pads = attribute(node, "strides", ones), attribute(node, "pads", [0] * 2 * len(image))
    if min(*block, *strides) < 1:
        return []
    framed = [n + a + b for n, a, b in zip(image, pads[: len(image)], pads[len(image) :], strict=True)]
    blocks = [(n - k) // s + 1 for n, k, s in zip(framed, block, strides, strict=True)]
    left = [(n - k) % s for n, k, s in zip(framed, block, strides, strict=True)]
    if attribute(node, "dilations", ones) != ones or int(np.prod(blocks)) != source[2]:
        return []
    area = int(np.prod(block))
    if source[1] * area > LONGEST**2:
        return []
    kernel = np.tile(np.eye(area, dtype=np.float32).reshape(area, 1, *block), (source[1] // area, *ones, 1))
    name = node.output[0]
    columns = f"{name}__columns"
    return [
        _reshaped(node.input[0], columns, (source[0], source[1], *blocks), weights),
        helper.make_node(
            "ConvTranspose",
            [columns, weights.put(f"{name}__kernel", kernel)],
            [name],
            group=source[1] // area,
            kernel_shape=block,
            strides=strides,
            pads=pads,
            output_padding=left,
        ),
    ]


def _given(node: NodeProto, weights: Weights) -> Mapping[int, Array]:
    """Constants among the inputs, by their places."""
    return {place: weights.get(name) for place, name in enumerate(node.input) if place and name}


def _reshaped(source: str, result: str, sizes: Sequence[int], weights: Weights) -> NodeProto:
    return helper.make_node("Reshape", [source, weights.put(f"{result}__sizes", np.asarray(sizes, np.int64))], [result])
