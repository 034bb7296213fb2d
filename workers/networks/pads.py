"""Padding that a file leaves to be worked out, written as numbers.

TVM pads for auto_pad with an operator of its own, a copy that also stops the conversion of layouts; it rounds the size of
a MaxPool with SAME_LOWER down, does not read the output_shape of a ConvTranspose, and takes the last windows of an LpPool
that is rounded up for whole ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, attribute, called, operator_types, rewrite, set_attributes, told
from workers.networks.shape import TensorShape
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import STANDARD

_SLIDING = frozenset({"Conv", "MaxPool", "AveragePool", "LpPool"})
_AUTOMATIC = (b"SAME_UPPER", b"SAME_LOWER", b"VALID")


def explicit_pads(model: ModelProto) -> str | None:
    """auto_pad of convolutions and poolings, output_shape of transposed convolutions, and what an LpPool reads beyond the last
    row become pads."""
    nodes = [node for node in model.graph.node if _asks(node)]
    rounded = [node for node in model.graph.node if node.op_type == "LpPool" and attribute(node, "ceil_mode", 0)]
    shapes = tensor_shapes(model) if nodes or rounded else {}
    written = sum(_write(node, shapes) for node in nodes) + sum(_fill(node, shapes) for node in rounded)
    return told(written, "operator got its padding in numbers", "operators got their padding in numbers")


def refuse_wide_windows(model: ModelProto) -> None:
    """Raises NetworkError for a window that is wider than what it goes over, its padding included: of it nothing comes, and by
    onnx's inference one number. Rounded up, one does."""
    if not _SLIDING & operator_types(model):
        return
    shapes = tensor_shapes(model)
    for node in model.graph.node:
        if node.domain not in STANDARD or node.op_type not in _SLIDING or attribute(node, "ceil_mode", 0):
            continue
        sizes, spans = _spatial(shapes.get(node.input[0])), _spans(node, shapes)
        if sizes is None or spans is None or attribute(node, "auto_pad", b"NOTSET") != b"NOTSET":
            continue
        pads = attribute(node, "pads", [0] * 2 * len(sizes))
        padded = [sum(one) for one in zip(sizes, pads[: len(sizes)], pads[len(sizes) :], strict=True)]
        if any(span > size for span, size in zip(spans, padded, strict=True)):
            raise NetworkError(
                called(node),
                f"its window of {_times(spans)} is wider than the {_times(padded)} that it goes over",
                "choose larger sizes for the network's inputs, or export it with larger ones",
            )


def cut_before_wrapped(model: ModelProto) -> str | None:
    """A Pad that takes off at one end and wraps at another is a Slice and a Pad: TVM wraps what is taken off too."""
    if "Pad" not in operator_types(model):
        return None
    weights = Weights(model.graph)

    def cut(node: NodeProto) -> list[NodeProto]:
        given = node.input[1] if node.op_type == "Pad" and attribute(node, "mode") == b"wrap" else ""
        pads = weights.get(given) if given in weights else np.zeros(0, np.int64)
        if not ((pads < 0).any() and (pads > 0).any()):
            return []
        before, behind = np.split(pads, 2)
        sliced = f"{node.output[0]}__cut"
        starts, ends = np.maximum(-before, 0), np.where(behind < 0, behind, np.iinfo(np.int64).max)
        axes = node.input[3] if len(node.input) > 3 else ""
        bounds = [weights.put(f"{sliced}_{word}", at) for word, at in (("starts", starts), ("ends", ends))]
        slicing = [*bounds, axes or weights.put(f"{sliced}_axes", np.arange(len(before)))]
        cutting = helper.make_node("Slice", [node.input[0], *slicing], [sliced])
        node.input[0], node.input[1] = sliced, weights.put(f"{sliced}_pads", np.maximum(pads, 0))
        return [cutting, node]

    return told(rewrite(model.graph, cut), "Pad was cut before it wraps", "Pads were cut before they wrap")


def _asks(node: NodeProto) -> bool:
    if node.domain not in STANDARD or node.op_type not in _SLIDING | {"ConvTranspose"}:
        return False
    return attribute(node, "auto_pad") in _AUTOMATIC or attribute(node, "output_shape") is not None


def _write(node: NodeProto, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether it could be written: sizes have to be known. Formulas: ONNX's definitions of Conv and ConvTranspose."""
    sizes = _spatial(shapes.get(node.input[0]))
    spans = _spans(node, shapes)
    if sizes is None or spans is None:
        return False
    strides = attribute(node, "strides", [1] * len(sizes))
    mode = attribute(node, "auto_pad", b"NOTSET")
    if node.op_type == "ConvTranspose":
        added = attribute(node, "output_padding", [0] * len(sizes))
        whole = [(n - 1) * s + span + a for n, s, span, a in zip(sizes, strides, spans, added, strict=True)]
        wanted = attribute(node, "output_shape")
        if wanted is not None:
            total = _transposed(node, strides, added, whole, wanted)
        else:  # a kernel smaller than its stride may make fewer than SAME asks for: it then makes what it makes
            total = [max(have - n * s, 0) for have, n, s in zip(whole, sizes, strides, strict=True)]
    else:
        outputs = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
        total = [
            max((out - 1) * s + span - n, 0) for out, s, span, n in zip(outputs, strides, spans, sizes, strict=True)
        ]
    if mode == b"VALID" and attribute(node, "output_shape") is None:
        total = [0] * len(sizes)
    less, more = [n // 2 for n in total], [n - n // 2 for n in total]
    pads = [*less, *more] if mode == b"SAME_UPPER" else [*more, *less]
    set_attributes(node, auto_pad=None, output_shape=None, pads=pads)
    return True


def _fill(node: NodeProto, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether the last windows could be filled with zeros, which add nothing. None begins behind what there is to read, which
    onnx's inference forgets in older operator sets."""
    sizes = _spatial(shapes.get(node.input[0]))
    if sizes is None:
        return False
    kernel, ones = attribute(node, "kernel_shape"), [1] * len(sizes)
    pads = attribute(node, "pads", [0] * 2 * len(sizes))
    before, behind = pads[: len(sizes)], list(pads[len(sizes) :])
    strides, dilations = attribute(node, "strides", ones), attribute(node, "dilations", ones)
    for axis, (stride, size) in enumerate(zip(strides, sizes, strict=True)):
        span, framed = (kernel[axis] - 1) * dilations[axis] + 1, before[axis] + size
        last = -(-(framed + behind[axis] - span) // stride) * stride
        last -= stride if last >= framed else 0
        behind[axis] = max(behind[axis], last + span - framed)
    set_attributes(node, ceil_mode=None, pads=[*before, *behind])
    return True


def _transposed(
    node: NodeProto, strides: Sequence[int], added: Sequence[int], whole: Sequence[int], wanted: Sequence[int]
) -> list[int]:
    """Rows to take off each axis of `whole` for outputs of `wanted` sizes; what is missing joins output_padding, `added`."""
    total = [have - want for have, want in zip(whole, wanted[-len(whole) :], strict=True)]
    missing = [max(-n, 0) for n in total]
    padding = [a + n for a, n in zip(added, missing, strict=True)]
    if any(n >= s for n, s in zip(padding, strides, strict=True) if n):
        raise NetworkError(
            f"output_shape {list(wanted)} of {node.name or node.output[0]}",
            f"the transposed convolution makes {whole} at most",
            "export it with pads and output_padding",
        )
    if any(missing):
        set_attributes(node, output_padding=padding)
    return [max(n, 0) for n in total]


def _spans(node: NodeProto, shapes: Mapping[str, TensorShape]) -> list[int] | None:
    """How far a window reaches along each axis."""
    kernel = attribute(node, "kernel_shape") or _spatial(shapes.get(node.input[1]) if len(node.input) > 1 else None)
    if kernel is None:
        return None
    return [(k - 1) * d + 1 for k, d in zip(kernel, attribute(node, "dilations", [1] * len(kernel)), strict=True)]


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _spatial(shape: TensorShape | None) -> list[int] | None:
    return None if shape is None or shape.static is None else list(shape.static[2:])
