"""Small networks, each with one form of an operator that TVM reads in another way, or not at all; input x, output y."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.zoo import constant, model_of

IMAGE = [1, 4, 7, 9]
STEPS, BATCH, READ, WIDTH = 3, 2, 6, 8


def drawn(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def one(kind: str, shape: Any, opset: int, *inputs: Any, **attributes: Any) -> ModelProto:
    """One operator on x of `shape` and constants; None is an input left out. The shape of y is found by inference."""
    names = [f"w{place}" if values is not None else "" for place, values in enumerate(inputs)]
    node = helper.make_node(kind, ["x", *names], ["y"], name="the one", **attributes)
    weights = [constant(name, values) for name, values in zip(names, inputs, strict=True) if name]
    return model_of([node], {"x": shape}, {"y": None}, weights, opset)


def floats(*values: float) -> Any:
    return np.asarray(values, np.float32)


def integers(*values: int) -> Any:
    return np.asarray(values, np.int64)


def topk() -> ModelProto:
    """The sum of the three largest values and of their places."""
    nodes = [
        helper.make_node("TopK", ["x", "k"], ["v", "i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["v", "f"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 9]}, {"y": [2, 3]}, [constant("k", integers(3))], 10)


def reduced_twice(kept: tuple[int, int], between: bool = False) -> ModelProto:
    """Means along the last axis and along the one that is last then, each of which keeps its axis or does not; in between, it
    may be put back."""
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[3], keepdims=kept[0]),
        helper.make_node("Unsqueeze", ["m", "three"], ["u"]) if between else helper.make_node("Identity", ["m"], ["u"]),
        helper.make_node("ReduceMean", ["u"], ["r"], axes=[2], keepdims=kept[1]),
        helper.make_node("Mul", ["r", "two"], ["y"]),
    ]
    return model_of(
        nodes, {"x": [1, 8, 4, 6]}, {"y": None}, [constant("two", floats(2)), constant("three", integers(3))], 13
    )


def unbound(kind: str, axis: int = 1) -> ModelProto:
    """Three parts of one place each, as PyTorch's exporters write unbind: slices or parts of a split, squeezed."""
    weights = [constant("axis", integers(axis)), constant("ones", integers(1, 1, 1))]
    nodes, names = [], [f"p{n}" for n in range(3)]
    if kind == "Split":
        nodes.append(helper.make_node("Split", ["x", "ones"], names, axis=axis))
    for n, name in enumerate(names):
        bounds = [f"{name}_{word}" for word in ("from", "to")]
        weights += [constant(bounds[0], integers(n - 3)), constant(bounds[1], integers(n + 1 if n < 2 else 2**63 - 1))]
        if kind == "Slice":
            nodes.append(helper.make_node("Slice", ["x", *bounds, "axis"], [name]))
        nodes.append(helper.make_node("Squeeze", [name, "axis"], [f"s{n}"]))
    nodes += [helper.make_node("Mul", ["s0", "s1"], ["m"]), helper.make_node("Add", ["m", "s2"], ["y"])]
    return model_of(nodes, {"x": [2, 3, 4, 5] if axis == 1 else [2, 4, 5, 3]}, {"y": None}, weights, 13)


def spread_before_a_convolution(opset: int = 17) -> ModelProto:
    """A grey image becomes one of three channels, each with a gain of its own."""
    nodes = [
        helper.make_node("Mul", ["x", "g"], ["three"]),
        helper.make_node("Conv", ["three", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    weights = [constant("g", drawn(1, 3, 1, 1)), constant("w", drawn(4, 3, 3, 3))]
    return model_of(nodes, {"x": [1, 1, 6, 6]}, {"y": None}, weights, opset)


def attributes_of_old() -> ModelProto:
    """Axes, splits and bounds as attributes, and a Softmax of all that follows its axis."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, split=[1, 3]),
        helper.make_node("Squeeze", ["a"], ["s"], axes=[1]),
        helper.make_node("Unsqueeze", ["s"], ["u"], axes=[1]),
        helper.make_node("ReduceSum", ["b"], ["r"], axes=[1]),
        helper.make_node("Add", ["u", "r"], ["m"]),
        helper.make_node("Clip", ["m"], ["c"], min=-1.0, max=1.5),
        helper.make_node("Dropout", ["c"], ["d"], ratio=0.5),
        helper.make_node("Pad", ["d"], ["p"], pads=[0, 0, 1, 0, 0, 0, 0, 2], value=0.5),
        helper.make_node("Softmax", ["p"], ["y"], axis=2),
    ]
    return model_of(nodes, {"x": IMAGE}, {"y": None}, [], 10)


OLD: dict[str, Callable[[], ModelProto]] = {
    "Upsample-9 nearest": lambda: one("Upsample", IMAGE, 9, floats(1, 1, 2, 3), mode="nearest"),
    "Upsample-9 linear": lambda: one("Upsample", IMAGE, 9, floats(1, 1, 2, 2), mode="linear"),
    "Resize-10 nearest": lambda: one("Resize", IMAGE, 10, floats(1, 1, 2, 1.5), mode="nearest"),
    "Resize-10 nearest, smaller": lambda: one("Resize", [1, 4, 8, 12], 10, floats(1, 1, 0.75, 0.75), mode="nearest"),
    "Resize-10 nearest, both": lambda: one("Resize", [1, 4, 8, 12], 10, floats(1, 1, 2, 0.5), mode="nearest"),
    "Resize-10 linear": lambda: one("Resize", IMAGE, 10, floats(1, 1, 2, 2), mode="linear"),
    "Slice-9": lambda: one("Slice", IMAGE, 9, starts=[1, -4], ends=[3, 100], axes=[1, 3]),
    "TopK-10": topk,
    "attributes of 10": attributes_of_old,
    **{
        f"Hardmax-11 of axis {axis}": lambda given=given: one("Hardmax", [3, 4, 5], 11, **given)  # type: ignore[misc]
        for axis, given in ((1, {}), (0, {"axis": 0}), (2, {"axis": 2}), (-2, {"axis": -2}))
    },
}
EMPTY_SCALES: dict[str, Callable[[], ModelProto]] = {
    f"Resize-{opset} {mode}": lambda opset=opset, mode=mode: one(  # type: ignore[misc]
        "Resize", IMAGE, opset, floats(), floats(), integers(1, 4, 14, 12), mode=mode
    )
    for opset in (11, 13)
    for mode in ("nearest", "linear")
}
PADDED: dict[str, Callable[[], ModelProto]] = {
    **{
        f"{kind} {mode}": lambda kind=kind, mode=mode, inputs=inputs, extra=extra: one(  # type: ignore[misc]
            kind, IMAGE, 17, *inputs, auto_pad=mode, strides=[2, 2], kernel_shape=[3, 2], **extra
        )
        for kind, inputs, extra in (
            ("Conv", (drawn(8, 4, 3, 2), drawn(8)), {}),
            ("MaxPool", (), {}),
            ("AveragePool", (), {}),
            ("ConvTranspose", (drawn(4, 8, 3, 2), drawn(8)), {}),
        )
        for mode in ("SAME_UPPER", "SAME_LOWER", "VALID")
    },
    **{
        f"ConvTranspose {mode} of a kernel smaller than its stride, {added} added": lambda mode=mode, added=added: one(  # type: ignore[misc]
            "ConvTranspose",
            [1, 2, 7, 9],
            17,
            drawn(2, 3, 2, 3),
            auto_pad=mode,
            strides=[4, 2],
            output_padding=[added, 0],
        )
        for mode in ("SAME_UPPER", "SAME_LOWER")
        for added in (0, 1)
    },
    "Conv of signals": lambda: convolved(1),
    "Conv of volumes": lambda: convolved(3),
    "ConvTranspose of a size": lambda: one(
        "ConvTranspose", IMAGE, 17, drawn(4, 8, 3, 3), strides=[2, 2], output_shape=[14, 18]
    ),
    "ConvTranspose of a size, upper": lambda: one(
        "ConvTranspose", IMAGE, 17, drawn(4, 8, 3, 3), strides=[2, 2], output_shape=[12, 17], auto_pad="SAME_UPPER"
    ),
}


def squeezed(opset: int, *axes: int) -> ModelProto:
    """What global pooling leaves of a convolution, without its last two axes, which may be counted from behind."""
    given = {"axes": axes} if opset < 13 else {}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["p"]),
        helper.make_node("Squeeze", ["p"] if given else ["p", "a"], ["y"], **given),
    ]
    return model_of(
        nodes, {"x": IMAGE}, {"y": None}, [constant("w", drawn(8, 4, 1, 1)), constant("a", integers(*axes))], opset
    )


SQUEEZED: dict[str, Callable[[], ModelProto]] = {
    f"Conv, Squeeze-{opset} of {axes}": lambda opset=opset, axes=axes: squeezed(opset, *axes)  # type: ignore[misc]
    for opset in (12, 17)
    for axes in ((2, 3), (-1, -2), (-1, 2))
}


def normalised() -> ModelProto:
    """x over its length, as sentence encoders end."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("ReduceL2", ["m"], ["n"], axes=[1], keepdims=1),
        helper.make_node("Div", ["m", "n"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 16]}, {"y": [2, 16]}, [constant("w", drawn(16, 16))])


def encoder(opset: int = 20) -> ModelProto:
    """One layer of two heads and GELU by erf, its attention as the encoders of Hugging Face write it."""
    heads, width, tokens = 2, 16, 6
    nodes, weights = [], [constant("shape", integers(1, tokens, heads, width // heads))]
    for place, name in enumerate("qkv"):
        weights += [
            constant(f"w{name}", drawn(width, width, seed=place)),
            constant(f"b{name}", drawn(width, seed=place)),
        ]
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Add", [f"b{name}", f"{name}0"], [f"{name}1"]),
            helper.make_node("Reshape", [f"{name}1", "shape"], [f"{name}2"]),
            helper.make_node("Transpose", [f"{name}2"], [name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]),
        ]
    nodes += [
        helper.make_node("MatMul", ["q", "k"], ["s"]),
        helper.make_node("Div", ["s", "root"], ["t"]),
        helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["c"]),
        helper.make_node("Transpose", ["c"], ["ct"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ct", "flat"], ["f"]),
        helper.make_node("MatMul", ["f", "wo"], ["o"]),
        helper.make_node("Div", ["o", "root2"], ["e0"]),
        helper.make_node("Erf", ["e0"], ["e1"]),
        helper.make_node("Add", ["e1", "one"], ["e2"]),
        helper.make_node("Mul", ["o", "e2"], ["e3"]),
        helper.make_node("Mul", ["e3", "half"], ["y"]),
    ]
    weights += [
        constant("root", np.float32(np.sqrt(width // heads))),
        constant("flat", integers(1, tokens, width)),
        constant("wo", drawn(width, width, seed=3)),
        constant("root2", np.float32(np.sqrt(2))),
        constant("one", np.float32(1)),
        constant("half", np.float32(0.5)),
    ]
    return model_of(nodes, {"x": [1, tokens, width]}, {"y": [1, tokens, width]}, weights, opset)


FUSED: dict[str, Callable[[], ModelProto]] = {"normalised": normalised, "encoder": encoder}


def attention() -> ModelProto:
    node = helper.make_node("Attention", ["x", "x", "x"], ["y"], q_num_heads=2, kv_num_heads=2)
    return model_of([node], {"x": [1, 6, 16]}, {"y": [1, 6, 16]}, [], 23)


def attention_with_a_past() -> ModelProto:
    """Nobody wrote down the type of what it reads, and its mask is left out before what was kept of the words before."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Attention", ["r", "x", "x", "", "k", "v"], ["y", "p", "q"], is_causal=1),
    ]
    past = [constant(name, drawn(1, 2, 3, 8, seed=seed)) for seed, name in enumerate("kv")]
    return model_of(nodes, {"x": [1, 2, 4, 8]}, {"y": [1, 2, 4, 8]}, past, 23)


def attention_behind_groups() -> ModelProto:
    """As in the middle of a diffusion network: of what is normalised by groups ONNX tells no size."""
    nodes = [
        helper.make_node("GroupNormalization", ["x", "s", "b"], ["n"], num_groups=2),
        helper.make_node("Reshape", ["n", "sizes"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Attention", ["t", "t", "t"], ["y"], q_num_heads=2, kv_num_heads=2),
    ]
    weights = [constant("s", drawn(8)), constant("b", drawn(8, seed=1)), constant("sizes", integers(1, 8, 30))]
    return model_of(nodes, {"x": [1, 8, 5, 6]}, {"y": None}, weights, 23)


def windowed(kind: str) -> ModelProto:
    """x under a window whose attributes are all left out."""
    nodes = [helper.make_node(kind, ["k"], ["w"]), helper.make_node("Mul", ["x", "w"], ["y"])]
    return model_of(nodes, {"x": [2, 8]}, {"y": [2, 8]}, [constant("k", np.asarray(8))])


def heard() -> ModelProto:
    """An STFT under such a window."""
    nodes = [helper.make_node("HannWindow", ["k"], ["w"]), helper.make_node("STFT", ["x", "s", "w"], ["y"], onesided=1)]
    weights = [constant("k", np.asarray(16)), constant("s", np.asarray(8))]
    return model_of(nodes, {"x": [2, 100, 1]}, {"y": [2, 11, 9, 2]}, weights)


def branches(then: list[Any], otherwise: list[Any], shape: Any = None) -> dict[str, Any]:
    """Attributes of an If whose branches end in a tensor that both call b."""
    made = [helper.make_tensor_value_info("b", TensorProto.FLOAT, shape)]
    return {
        "then_branch": helper.make_graph(then, "then", [], made),
        "else_branch": helper.make_graph(otherwise, "otherwise", [], made),
    }


def branched(kind: str, sizes: Any, made: Any, opset: int = 17, also: tuple[str, ...] = (), **given: Any) -> ModelProto:
    """An operator or a Relu, as x decides."""
    attributes = branches(
        [helper.make_node(kind, ["x"], ["b", *also], **given)], [helper.make_node("Relu", ["x"], ["b"])], made
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], **attributes),
    ]
    return model_of(nodes, {"x": sizes}, {"y": made}, [constant("zero", np.float32(0))], opset)


def squeezed_where_one(opset: int = 17) -> ModelProto:
    """x.squeeze(1) as PyTorch exports it: an axis goes where its size is one, and so it is asked for."""
    given = {"axes": [1]} if opset < 13 else {}
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "one"], ["d"]),
        helper.make_node("Equal", ["d", "one"], ["c"]),
        helper.make_node(
            "If",
            ["c"],
            ["r"],
            **branches(
                [helper.make_node("Squeeze", ["x"] if given else ["x", "a"], ["b"], **given)],
                [helper.make_node("Identity", ["x"], ["b"])],
            ),
        ),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    return model_of(
        nodes, {"x": [2, 1, 3]}, {"y": None}, [constant("one", integers(1)), constant("a", integers(1))], opset
    )


def branches_within_branches(taken: bool) -> ModelProto:
    """One in the other, and one behind both with names that were there, one of which the main graph has too."""
    inner = branches([helper.make_node("Mul", ["r", "w"], ["b"])], [helper.make_node("Neg", ["r"], ["b"])])
    inner["then_branch"].initializer.append(constant("w", drawn(3)))
    outer = [helper.make_node("Exp", ["x"], ["r"]), helper.make_node("If", ["c"], ["b"], **inner)]
    behind = [helper.make_node("Tanh", ["a"], ["r"]), helper.make_node("Neg", ["r"], ["b"])]
    nodes = [
        helper.make_node("If", ["c"], ["a"], **branches(outer, [helper.make_node("Neg", ["x"], ["b"])])),
        helper.make_node("If", ["c"], ["d"], **branches(behind, [helper.make_node("Relu", ["a"], ["b"])])),
        helper.make_node("Add", ["a", "d"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 3]}, {"y": [2, 3]}, [constant("c", np.asarray(taken))])


BRANCHED: dict[str, Callable[[], ModelProto]] = {
    "Swish in a branch": lambda: branched("Swish", [2, 3], [2, 3], 24),
    "places that nothing reads in a branch": lambda: branched(
        "MaxPool", [1, 2, 4, 4], [1, 2, 4, 4], also=("m",), kernel_shape=[1, 1]
    ),
    **{
        f"squeezed-{opset} where the size is 1": lambda opset=opset: squeezed_where_one(opset)  # type: ignore[misc]
        for opset in (11, 17)
    },
    "branches within branches": lambda: branches_within_branches(True),
    "branches that are not taken": lambda: branches_within_branches(False),
}


DEFINED: dict[str, Callable[[], ModelProto]] = {
    **{kind: lambda kind=kind: windowed(kind) for kind in ("BlackmanWindow", "HammingWindow", "HannWindow")},  # type: ignore[misc]
    "STFT with a window that ONNX defines": heard,
    "Swish of its own alpha": lambda: one("Swish", IMAGE, 24),
    "Celu": lambda: one("Celu", IMAGE, 12, alpha=1.5),
    "Attention": attention,
    "Attention with a past": attention_with_a_past,
    "Attention behind groups": attention_behind_groups,
    "Unsqueeze of one axis": lambda: one("Unsqueeze", IMAGE, 17, np.asarray(-2)),
    "Swish": lambda: one("Swish", IMAGE, 24, alpha=1.5),
}


def recurrent(kind: str, result: str = "Y", state: bool = False, steps: int = STEPS, **attributes: Any) -> ModelProto:
    """LSTM, GRU or RNN; `result` is one of Y, Y_h, Y_c."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = [
        constant("w", drawn(directions, gates * WIDTH, READ)),
        constant("r", drawn(directions, gates * WIDTH, WIDTH, seed=1)),
        constant("b", drawn(directions, 2 * gates * WIDTH, seed=2)),
    ]
    inputs = ["x", "w", "r", "b"]
    if state:
        starts = ["h", "c"][: 1 + (kind == "LSTM")]
        weights += [constant(name, drawn(directions, BATCH, WIDTH, seed=place)) for place, name in enumerate(starts, 3)]
        inputs += ["", *starts]
    outputs = ["y" if name == result else "" for name in ("Y", "Y_h", "Y_c")]
    node = helper.make_node(kind, inputs, outputs[: 3 if kind == "LSTM" else 2], hidden_size=WIDTH, **attributes)
    return model_of([node], {"x": [steps, BATCH, READ]}, {"y": None}, weights)


RECURRENT: dict[str, Callable[[], ModelProto]] = {
    "LSTM": lambda: recurrent("LSTM"),
    "LSTM of one step": lambda: recurrent("LSTM", steps=1),
    "LSTM with state": lambda: recurrent("LSTM", "Y_c", state=True, direction="bidirectional"),
    "LSTM backwards": lambda: recurrent("LSTM", "Y_h", direction="reverse"),
    "GRU": lambda: recurrent("GRU", state=True, direction="bidirectional"),
    "GRU of PyTorch": lambda: recurrent("GRU", "Y_h", direction="bidirectional", linear_before_reset=1),
    "RNN": lambda: recurrent("RNN", direction="reverse"),
    "RNN of Relu": lambda: recurrent("RNN", direction="bidirectional", activations=["Relu", "Relu"]),
}


def decoded() -> ModelProto:
    """As of a U-Net: what a convolution makes is laid out with its channels last, and a transposed one reads it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ConvTranspose", ["r", "v"], ["u"], strides=[2, 2]),
        helper.make_node("Conv", ["u", "t"], ["y"]),
    ]
    weights = [constant("w", drawn(8, 4, 3, 3)), constant("v", drawn(8, 4, 2, 2)), constant("t", drawn(8, 4, 3, 3))]
    return model_of(nodes, {"x": IMAGE}, {"y": None}, weights)


def convolved(axes: int) -> ModelProto:
    """Of signals, images or volumes."""
    kernels = [constant(name, drawn(4, 4, *[3] * axes, seed=place)) for place, name in enumerate("wv")]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1] * axes),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["d"], pads=[1, 1] * axes),
        helper.make_node("Add", ["d", "r"], ["y"]),
    ]
    return model_of(nodes, {"x": [1, 4, *range(5, 5 + axes)]}, {"y": None}, kernels)


SCATTERED: dict[str, Callable[[], ModelProto]] = {
    "ScatterElements": lambda: one(
        "ScatterElements", [3, 4], 18, integers(*[2, 0, 3, 1] * 3).reshape(3, 4), drawn(3, 4), axis=1
    ),
    "ScatterElements of a part": lambda: one(
        "ScatterElements", [2, 3, 4], 18, integers(3, 0, -1, 2, 1, 1).reshape(2, 1, 3), drawn(2, 1, 3), axis=-1
    ),
    "ScatterElements of a part, first axis": lambda: one(
        "ScatterElements", [5, 3], 18, integers(4, 0, 4).reshape(3, 1), drawn(3, 1), axis=0, reduction="add"
    ),
}


def masked(kind: str, scale: float, dtype: int, **attributes: Any) -> ModelProto:
    """The place of the extreme in rows that hold nothing else than their type's bound, as masks do."""
    nodes = [
        helper.make_node("Mul", ["x", "n"], ["o"]),
        helper.make_node("Add", ["o", "b"], ["a"]),
        helper.make_node("Cast", ["a"], ["c"], to=dtype),
        helper.make_node(kind, ["c"], ["p"], axis=1, **attributes),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT),
    ]
    return model_of(nodes, {"x": [3, 5]}, {"y": None}, [constant("n", floats(0.0)), constant("b", floats(scale))], 13)


def last_of_equals() -> ModelProto:
    nodes = [
        helper.make_node("ArgMax", ["x"], ["p"], axis=0, select_last_index=1),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT),
    ]
    return model_of(nodes, {"x": [2, 4, 9]}, {"y": None}, [], 13)


def masked_rows(kind: str, end: float, *sizes: int) -> ModelProto:
    """Whether all of a row is masked, as an Attention asks, of a constant of so many axes."""
    nodes = [
        helper.make_node("Greater", ["x", "b"], ["g"]),
        helper.make_node("Where", ["g", "x", "e"], ["w"]),
        helper.make_node(kind, ["w"], ["m"], axes=[1], keepdims=0),
        helper.make_node("CastLike", ["e", "m"], ["l"]),
        helper.make_node("Equal", ["m", "l"], ["q"]),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT),
    ]
    bound = np.asarray([[9.0], [0.0], [9.0]], np.float32)
    return model_of(
        nodes, {"x": [3, 5]}, {"y": None}, [constant("b", bound), constant("e", np.full(sizes, end, np.float32))], 17
    )


def clipped() -> ModelProto:
    """A Slice of nothing, joined to all, and twice so, in front of it and alone."""
    nodes = [
        helper.make_node("Slice", ["x", "two", "none", "none"], ["s"]),
        helper.make_node("Reshape", ["s", "sizes"], ["r"]),
        helper.make_node("Concat", ["r", "x", "x"], ["c"], axis=0),
        helper.make_node("Concat", ["c", "s"], ["y"], axis=0),
    ]
    named = {"two": integers(2), "none": integers(0), "sizes": integers(0, 5)}
    weights = [constant(name, values) for name, values in named.items()]
    return model_of(nodes, {"x": [4, 5]}, {"y": None}, weights)


def parted(sizes: list[int], joined: list[int], between: str = "Identity") -> ModelProto:
    """A Split of x, of which some parts are joined in this order."""
    parts = [f"part{place}" for place in range(len(sizes))]
    nodes = [
        helper.make_node("Split", ["x", "s"], parts, axis=-1, name="the one"),
        *(helper.make_node(between, [part], [f"{part}b"]) for part in parts),
        helper.make_node("Concat", [f"{parts[place]}b" for place in joined], ["y"], axis=1),
    ]
    shape = {"x": [2, sum(sizes)]}, {"y": [2, sum(sizes[place] for place in joined)]}
    return model_of(nodes, *shape, [constant("s", integers(*sizes))])


def joined_with_nothing(kind: str, shape: list[int], *inputs: Any, outputs: tuple[str, ...] = ("n",)) -> ModelProto:
    """An operator that makes an empty tensor in front of x."""
    names = [f"w{place}" for place in range(len(inputs))]
    nodes = [
        helper.make_node(kind, ["x", *names], outputs),
        helper.make_node("Concat", ["n", "x"], ["y"], axis=1),
    ]
    return model_of(nodes, {"x": shape}, {"y": shape}, [constant(n, v) for n, v in zip(names, inputs, strict=True)])


def read_by_nobody() -> ModelProto:
    """A Slice of nothing, read by an operator that nothing reads."""
    model = clipped()
    del model.graph.node[2:]
    model.graph.node.append(helper.make_node("Relu", ["x"], ["y"]))
    return model


EMPTY: dict[str, Callable[[], ModelProto]] = {
    "nothing, joined": clipped,
    "nothing, read by nobody": read_by_nobody,
    "nothing in front": lambda: parted([0, 3], [0, 1]),
    "nothing in between": lambda: parted([1, 0, 3], [2, 1, 0], "Tanh"),
    "nothing in front, one read": lambda: parted([0, 2, 3], [1]),
    "nothing of TopK": lambda: joined_with_nothing("TopK", [2, 3], integers(0), outputs=("n", "i")),
    "nothing of Expand": lambda: joined_with_nothing("Expand", [2, 1], integers(2, 0)),
}

EXTREME: dict[str, Callable[[], ModelProto]] = {
    "ArgMax of the last": last_of_equals,
    "ArgMax of zeros": lambda: masked("ArgMax", 0.0, TensorProto.UINT8),
    "ArgMax of zeros, last": lambda: masked("ArgMax", 0.0, TensorProto.UINT8, select_last_index=1),
    "ArgMin of infinity": lambda: masked("ArgMin", float("inf"), TensorProto.FLOAT, keepdims=0),
    "ReduceMax of a mask": lambda: masked_rows("ReduceMax", -float("inf"), 1),
    "ReduceMin of a mask": lambda: masked_rows("ReduceMin", float("inf")),
}


def whole(kind: str, dtype: int, *inputs: Any, opset: int = 17, **attributes: Any) -> ModelProto:
    """One operator on whole numbers from x, up to 10 in size."""
    names = [f"w{place}" for place in range(len(inputs))]
    nodes = [
        helper.make_node("Mul", ["x", "ten"], ["t"]),
        *([helper.make_node("Abs", ["t"], ["a"])] if dtype in (TensorProto.UINT8, TensorProto.UINT32) else []),
        helper.make_node("Cast", ["a" if dtype in (TensorProto.UINT8, TensorProto.UINT32) else "t"], ["i"], to=dtype),
        helper.make_node(kind, ["i", *names], ["o"], name="the one", **attributes),
        helper.make_node("Cast", ["o"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = [constant("ten", floats(10)), *(constant(n, values) for n, values in zip(names, inputs, strict=True))]
    return model_of(nodes, {"x": [4, 9]}, {"y": None}, weights, opset)


def found(dtype: int) -> ModelProto:
    """The three largest of whole numbers."""
    model = whole("TopK", dtype, integers(3))
    model.graph.node[-2].output.append("places")
    return model


def asked(kind: str, *inputs: Any, opset: int = 20, **attributes: Any) -> ModelProto:
    """One operator on whether x is above 0."""
    names = [f"w{place}" for place in range(len(inputs))]
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["a"]),
        helper.make_node(kind, ["a", *names], ["o"], name="the one", **attributes),
        helper.make_node("Cast", ["o"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = [constant("zero", floats(0)), *(constant(n, values) for n, values in zip(names, inputs, strict=True))]
    return model_of(nodes, {"x": [4, 3]}, {"y": None}, weights, opset)


def above_both() -> ModelProto:
    """Whether x is above both bounds or neither."""
    nodes = [
        helper.make_node("Greater", ["x", "zero"], ["a"]),
        helper.make_node("Greater", ["x", "half"], ["b"]),
        helper.make_node("Equal", ["a", "b"], ["e"]),
        helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT),
    ]
    return model_of(nodes, {"x": [4, 9]}, {"y": None}, [constant("zero", floats(0)), constant("half", floats(0.5))], 13)


TRUTH: dict[str, Callable[[], ModelProto]] = {
    "Equal of truth values": above_both,
    "Equal of a truth value": lambda: asked("Equal", np.asarray([[[True]], [[False]]])),
    "ReduceMax of truth values": lambda: asked("ReduceMax", integers(1)),
    "ReduceMin of truth values": lambda: asked("ReduceMin", keepdims=0),
}
WHOLE: dict[str, Callable[[], ModelProto]] = {
    "TopK of int16": lambda: found(TensorProto.INT16),
    "TopK of int8": lambda: found(TensorProto.INT8),
    "TopK of uint8": lambda: found(TensorProto.UINT8),
    "ReduceMean of int32": lambda: whole("ReduceMean", TensorProto.INT32, axes=[1]),
    "ReduceL2 of int32": lambda: whole("ReduceL2", TensorProto.INT32, axes=[1]),
    "ReduceL2 of int64": lambda: whole("ReduceL2", TensorProto.INT64, axes=[0], keepdims=0),
    "Sign of uint8": lambda: whole("Sign", TensorProto.UINT8),
    "Sign of uint32": lambda: whole("Sign", TensorProto.UINT32),
    "PRelu of int32": lambda: whole("PRelu", TensorProto.INT32, np.arange(9, dtype=np.int32)),
    "PRelu of int64": lambda: whole("PRelu", TensorProto.INT64, integers(-3)),
    "PRelu of uint32": lambda: whole("PRelu", TensorProto.UINT32, np.asarray([3], np.uint32)),
}


def in_sequence(lengths: Any, axis: int, *places: int, keepdims: int = 1, opset: int = 17) -> ModelProto:
    """The largest numbers of some parts of a sequence, added up."""
    nodes = [
        helper.make_node(
            "SplitToSequence", ["x", "l"][: 1 + (lengths is not None)], ["q"], axis=axis, keepdims=keepdims
        )
    ]
    weights = [] if lengths is None else [constant("l", np.asarray(lengths, np.int64))]
    for name, place in zip("abc", places, strict=False):
        weights.append(constant(f"{name}_place", np.asarray(place, np.int64)))
        nodes += [
            helper.make_node("SequenceAt", ["q", f"{name}_place"], [name]),
            helper.make_node("ReduceMax", [name], [f"{name}_most"], axes=[axis] if keepdims else [0]),
        ]
    nodes.append(helper.make_node("Sum", [f"{name}_most" for name in "abc"[: len(places)]], ["y"]))
    return model_of(nodes, {"x": [2, 9, 4]}, {"y": None}, weights, opset)


SEQUENCES: dict[str, Callable[[], ModelProto]] = {
    f"SplitToSequence by {lengths} along {axis}, {keepdims}": lambda given=(lengths, axis, *places), keepdims=keepdims: (  # type: ignore[misc]
        in_sequence(*given, keepdims=keepdims)
    )
    for lengths, axis, places, keepdims in (
        (4, 1, (0, 2, -2), 1),
        (3, -2, (-1, 0), 1),
        ([2, 3, 4], 1, (2, -3), 1),
        ([9], 1, (0,), 1),
        (None, 2, (0, 3), 1),
        (None, 1, (8, -9), 0),
    )
}


def early(opset: int) -> ModelProto:
    """A normalisation as ONNX Runtime's optimiser writes it, and a Softmax, which older sets have of all that follows."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "w", "b"], ["n"], axis=-1, epsilon=1e-5),
        helper.make_node("Softmax", ["n"], ["y"], axis=1),
    ]
    weights = [constant("w", drawn(6)), constant("b", drawn(6, seed=1))]
    return model_of(nodes, {"x": [2, 4, 6]}, {"y": [2, 4, 6]}, weights, opset)


def scaled_and_moved_alike() -> ModelProto:
    """By the same numbers."""
    node = helper.make_node("LayerNormalization", ["x", "w", "w"], ["y"], axis=1)
    return model_of([node], {"x": [2, 4, 6]}, {"y": None}, [constant("w", drawn(6))])


def twice_normalised() -> ModelProto:
    """What comes between has the size that the first one has."""
    nodes = [
        helper.make_node("MeanVarianceNormalization", ["x"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("MeanVarianceNormalization", ["r"], ["y"]),
    ]
    return model_of(nodes, {"x": [6, 7]}, {"y": [6, 7]}, [])


def as_doubles(kind: str, opset: int, *inputs: Any, **attributes: Any) -> ModelProto:
    """One operator on float64 from x."""
    names = [f"w{place}" for place in range(len(inputs))]
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        helper.make_node(kind, ["d", *names], ["o"], name="the one", **attributes),
        helper.make_node("Cast", ["o"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = [constant(name, values.astype(np.float64)) for name, values in zip(names, inputs, strict=True)]
    return model_of(nodes, {"x": [2, 4, 6]}, {"y": None}, weights, opset)


NORMALIZED: dict[str, Callable[[], ModelProto]] = {
    **{
        f"LayerNormalization of {axis}, scaled by {list(scale.shape)}": lambda axis=axis, scale=scale, rest=rest: one(  # type: ignore[misc]
            "LayerNormalization", [2, 4, 6], 17, 1 + scale, *rest, axis=axis
        )
        for axis, scale, rest in (
            (1, drawn(6), [drawn(6, seed=1)]),
            (1, drawn(4, 1), []),
            (-2, drawn(1), []),
            (0, drawn(6), [drawn(6, seed=1)]),
            (-1, drawn(4, 6), [drawn(4, 6, seed=1)]),
        )
    },
    **{
        f"LayerNormalization of operator set {opset}": lambda opset=opset: early(opset)  # type: ignore[misc]
        for opset in (9, 13, 16)
    },
    "LayerNormalization of one scale and bias": lambda: scaled_and_moved_alike(),
    "LayerNormalization of float64": lambda: as_doubles("LayerNormalization", 17, drawn(6), drawn(6, seed=1), axis=1),
    "LayerNormalization of float64, newer": lambda: as_doubles("LayerNormalization", 18, drawn(4, 6), axis=-2),
    **{
        f"RMSNormalization of {axis}, scaled by {list(scale.shape)}": lambda axis=axis, scale=scale: one(  # type: ignore[misc]
            "RMSNormalization", [2, 4, 6], 23, 1 + scale, axis=axis
        )
        for axis, scale in ((-2, drawn(6)), (1, drawn(1)), (0, drawn(2, 4, 6)), (-3, drawn(6)), (-1, drawn(4, 6)))
    },
    **{
        f"MeanVarianceNormalization of {len(shape)} axes": lambda shape=shape: model_of(  # type: ignore[misc]
            [helper.make_node("MeanVarianceNormalization", ["x"], ["y"])], {"x": shape}, {"y": shape}, []
        )
        for shape in ([6, 7], [2, 4, 9], [2, 4, 5, 5])
    },
    "MeanVarianceNormalization of another": twice_normalised,
}


def by_length(opset: int, **attributes: Any) -> ModelProto:
    """Of rows of which one is nothing but zeros, and of a constant."""
    nodes = [
        helper.make_node("Mul", ["x", "m"], ["r"]),
        helper.make_node("LpNormalization", ["r"], ["a"], **attributes),
        helper.make_node("LpNormalization", ["w"], ["b"], **attributes),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    weights = [constant("m", floats(1, 0, 1)[:, None]), constant("w", drawn(3, 5))]
    return model_of(nodes, {"x": [3, 5]}, {"y": None}, weights, opset)


def diagonal() -> ModelProto:
    """x where it is above its diagonal, of which the type is written down."""
    nodes = [
        helper.make_node("EyeLike", ["x"], ["e"], k=1, dtype=TensorProto.INT32),
        helper.make_node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    return model_of(nodes, {"x": [3, 5]}, {"y": None}, [])


def alone(kind: str, *axes: Any) -> ModelProto:
    """A reduction of numbers from 0.5 on along no axis."""
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "half"], ["p"]),
        helper.make_node("Neg" if kind in ("ReduceL1", "ReduceL2") else "Identity", ["p"], ["n"]),
        helper.make_node(kind, ["n", *(["axes"] if axes else [])], ["y"], noop_with_empty_axes=1),
    ]
    weights = [constant("half", floats(0.5)), *(constant("axes", values) for values in axes)]
    return model_of(nodes, {"x": [3, 5]}, {"y": None}, weights, 18)


LENGTHS: dict[str, Callable[[], ModelProto]] = {
    f"LpNormalization-{opset} of {given}": lambda opset=opset, given=given: by_length(opset, **given)  # type: ignore[misc]
    for opset, given in ((17, {"p": 1}), (17, {"axis": 1}), (22, {"axis": 1, "p": 1}), (22, {}))
}
REDUCED: dict[str, Callable[[], ModelProto]] = {
    **{
        f"{kind} of no axis": lambda kind=kind: alone(kind)  # type: ignore[misc]
        for kind in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSum", "ReduceSumSquare")
    },
    "ReduceSumSquare of an empty list of axes": lambda: alone("ReduceSumSquare", integers()),
    "ReduceL2 of int32 and no axis": lambda: whole("ReduceL2", TensorProto.INT32, opset=18, noop_with_empty_axes=1),
}
WRAPPED: dict[str, Callable[[], ModelProto]] = {
    f"Pad that wraps by {pads}": lambda shape=shape, pads=pads, axes=axes: one(  # type: ignore[misc]
        "Pad", shape, 19, integers(*pads), None, *axes, mode="wrap"
    )
    for shape, pads, axes in (
        ([4], [-1, 2], []),
        ([4, 5], [2, 1, -1, 0], []),
        ([3, 4, 5], [-1, 3], [integers(-2)]),
    )
}
SYMMETRIC: dict[str, Callable[[], ModelProto]] = {
    f"Resize half_pixel_symmetric {mode} by {word}": lambda mode=mode, given=given: one(  # type: ignore[misc]
        "Resize", IMAGE, 19, None, *given, mode=mode, coordinate_transformation_mode="half_pixel_symmetric"
    )
    for mode in ("nearest", "linear", "cubic")
    for word, given in (("scales", [floats(1, 1, 2, 3)]), ("sizes", [None, integers(1, 4, 10, 5)]))
}
SYMMETRIC["Resize half_pixel_symmetric by a whole scale"] = lambda: one(
    "Resize",
    IMAGE,
    19,
    None,
    floats(1, 1, 2, 3),
    mode="nearest",
    nearest_mode="floor",
    coordinate_transformation_mode="half_pixel_symmetric",
)
NEAREST: dict[str, Callable[[], ModelProto]] = {
    f"Resize to the nearest of {shape} by {scales}, {to}": lambda shape=shape, scales=scales, to=to: one(  # type: ignore[misc]
        "Resize", shape, 18, None, floats(*scales), coordinate_transformation_mode="asymmetric", nearest_mode=to
    )
    for shape, scales, to in (
        ([1, 4, 41, 20], (1, 1, 1.2, 0.6), "round_prefer_ceil"),
        ([1, 4, 40, 7], (1, 1, 2.5, 3), "floor"),
        ([1, 4, 40, 20], (1, 1, 1.2, 1), "floor"),
        ([6, 9], (1.5, 2), "ceil"),
        ([1, 2, 160, 2], (1, 1, 0.9, 1), "floor"),
    )
}
"""Of pixels between which a place falls either way, of those of which it does not, of which TVM's step is another, and of no
picture."""
NEAREST["Resize to the nearest of halfway places"] = lambda: one("Resize", IMAGE, 18, None, floats(1, 1, 1.5, 3))


def made(sizes: list[int], *form: Any, **attributes: Any) -> ModelProto:
    """One whose y has `sizes`, of which inference finds others."""
    model = one(*form, **attributes)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes))
    return model


TRANSFORMED: dict[str, Callable[[], ModelProto]] = {
    "STFT with a window": lambda: made([2, 11, 9, 2], "STFT", [2, 100], 17, np.asarray(8), drawn(16), onesided=1),
    "STFT of both sides": lambda: made(
        [2, 13, 15, 2], "STFT", [2, 100, 1], 17, np.asarray(7), None, np.asarray(15), onesided=0
    ),
    "DFT of one side, longer": lambda: made([2, 9, 3, 2], "DFT", [2, 12, 3, 1], 17, np.asarray(16), axis=1, onesided=1),
    "DFT of a part": lambda: made([2, 5, 3, 2], "DFT", [2, 12, 3, 2], 17, np.asarray(5), axis=1),
    "DFT that names its axis": lambda: made([2, 12, 3, 2], "DFT", [2, 12, 3, 1], 20, None, np.asarray(1)),
    "DFT back": lambda: made([2, 12, 3, 2], "DFT", [2, 12, 3, 2], 20, inverse=1),
    "DFT of one side, back": lambda: made([2, 16, 3, 1], "DFT", [2, 9, 3, 2], 17, axis=1, inverse=1, onesided=1),
    "DFT of one side, back to an odd length": lambda: made(
        [3, 9, 1], "DFT", [3, 5, 2], 20, np.asarray(9), np.asarray(-2), inverse=1, onesided=1
    ),
    "Col2Im": lambda: made(
        [1, 2, 6, 6], "Col2Im", [1, 18, 9], 18, integers(6, 6), integers(3, 3), strides=[2, 2], pads=[1] * 4
    ),
    "Col2Im that leaves a row": lambda: made(
        [1, 2, 7, 9], "Col2Im", [1, 8, 12], 18, integers(7, 9), integers(2, 2), strides=[2, 2]
    ),
}
"""Waves and columns."""


def thinned(sides: int = 6, axis_by_axis: bool = False) -> Any:
    """Two numbers of a square, the rest zeros."""
    numbers = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.5, -2.0])
    places = integers(0, 1, 2, 3).reshape(2, 2) if axis_by_axis else integers(1, 2 * sides + 3)
    return helper.make_sparse_tensor(numbers, constant("places", places), [sides, sides])


def sparse(**form: Any) -> ModelProto:
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 6]}, {"y": [2, 6]}, [])
    model.graph.sparse_initializer.append(thinned(**form))
    return model


def sparse_constant() -> ModelProto:
    nodes = [
        helper.make_node("Constant", [], ["w"], sparse_value=thinned()),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return model_of(nodes, {"x": [2, 6]}, {"y": [2, 6]}, [])


SPARSE: dict[str, Callable[[], ModelProto]] = {
    "sparse weight": sparse,
    "sparse weight, axis by axis": lambda: sparse(axis_by_axis=True),
    "sparse Constant": sparse_constant,
}

FORMS = {
    **WHOLE,
    **TRUTH,
    **NORMALIZED,
    **LENGTHS,
    **REDUCED,
    **WRAPPED,
    **SYMMETRIC,
    **SEQUENCES,
    **NEAREST,
    **EMPTY,
    **OLD,
    **EMPTY_SCALES,
    **PADDED,
    **SQUEEZED,
    **FUSED,
    **DEFINED,
    **RECURRENT,
    **SCATTERED,
    **TRANSFORMED,
    **EXTREME,
    **SPARSE,
    **BRANCHED,
    **{
        f"means of means that keep {kept}{' and what lies between' * between}": lambda kept=kept, between=between: (
            reduced_twice(  # type: ignore[misc]
                kept, between
            )
        )
        for kept, between in (((0, 1), False), ((1, 0), False), ((0, 0), False), ((0, 1), True))
    },
    "Conv of a grey image in three channels": spread_before_a_convolution,
    **{
        f"{kind} into places of axis {axis}": lambda kind=kind, axis=axis: unbound(kind, axis)  # type: ignore[misc]
        for kind in ("Slice", "Split")
        for axis in (1, -1)
    },
    "Mish": lambda: one("Mish", IMAGE, 18),
    "Softplus": lambda: one("Softplus", IMAGE, 17),
    **{
        f"{kind} of two": lambda kind=kind: one(kind, IMAGE, 13, drawn(4, 1, 1))  # type: ignore[misc]
        for kind in ("Max", "Min")
    },
    "EyeLike of another type": diagonal,
    "Conv, decoded": decoded,
    "Resize of a region": lambda: one(
        "Resize",
        IMAGE,
        18,
        floats(0.1, 0.2, 0.8, 0.9),
        None,
        integers(5, 6),
        axes=[2, 3],
        mode="linear",
        coordinate_transformation_mode="tf_crop_and_resize",
    ),
}
