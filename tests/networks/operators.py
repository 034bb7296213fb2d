"""Networks of one operator each: what a network from elsewhere is likely to have, on x of a few hundred numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from tests.networks.forms import drawn, floats, integers, one
from tests.zoo import constant, model_of

ROWS, IMAGE = [4, 50], [1, 8, 9, 9]


def chain(shape: list[int], *steps: tuple[Any, ...], **weights: Any) -> ModelProto:
    """Operators one after the other from x to y; a step is a kind and its other inputs, of `weights` or earlier outputs."""
    nodes, last = [], "x"
    for place, (kind, *others) in enumerate(steps):
        attributes = others.pop() if others and isinstance(others[-1], dict) else {}
        name = "y" if place == len(steps) - 1 else f"v{place}"
        given = [f"v{other}" if isinstance(other, int) else other for other in others]
        nodes.append(helper.make_node(kind, [last, *given], [name], **attributes))
        last = name
    return model_of(nodes, {"x": shape}, {"y": None}, [constant(name, values) for name, values in weights.items()])


def square(rows: int, columns: int) -> Any:
    """Places in `columns`, `rows` of them in each of four rows."""
    return np.random.default_rng(0).integers(0, columns, (4, rows))


FLOAT = {"to": TensorProto.FLOAT}
ALONE: dict[str, tuple[Any, ...]] = {
    "GatherElements": ([4, 8], square(8, 8), {"axis": 1}),
    "Einsum": ([2, 16, 24], drawn(24, 12), {"equation": "bij,jk->bik"}),
    "DepthToSpace": ([1, 16, 8, 8], {"blocksize": 2}),
    "SpaceToDepth": ([1, 4, 8, 8], {"blocksize": 2}),
    "InstanceNormalization": ([1, 8, 16, 16], drawn(8), drawn(8, seed=1)),
    "LayerNormalization": ([2, 8, 64], drawn(64), drawn(64, seed=1)),
    "LogSoftmax": ([4, 1000],),
    "Softmax": ([2, 30, 17], {"axis": 1}),
    "PRelu": (IMAGE, drawn(8, 1, 1)),
    "HardSwish": (IMAGE,),
    "Elu": (IMAGE,),
    "Selu": (IMAGE,),
    "LRN": (IMAGE, {"size": 5}),
    "GlobalMaxPool": (IMAGE,),
    "LpPool": (IMAGE, {"kernel_shape": [3, 3]}),
    "Trilu": ([8, 8], {"upper": 0}),
    "Tile": ([2, 3], integers(2, 3)),
    "Expand": ([1, 3], integers(5, 3)),
    "Gemm": ([3, 40], drawn(20, 40), drawn(20), {"alpha": 0.5, "beta": 2.0, "transB": 1}),
    "MatMul": ([3, 40], drawn(40)),
    "ReduceMean": ([3, 40, 5], {"keepdims": 0}),
    "ReduceL2": ([4, 64], integers(1)),
    "Mod": (ROWS, np.float32(0.7), {"fmod": 1}),
    "Clip": (ROWS, np.float32(-0.5), np.float32(0.5)),
    "Sign": (ROWS,),
    "Hardmax": (ROWS,),
    "Shrink": (ROWS,),
    "ThresholdedRelu": (ROWS,),
    "BatchNormalization": (IMAGE, drawn(8), drawn(8, seed=1), drawn(8, seed=2), np.abs(drawn(8, seed=3))),
    "Resize": ([1, 4, 8, 8], None, floats(1, 1, 2, 2), {"mode": "cubic"}),
}
OPERATORS: dict[str, Callable[[], ModelProto]] = {
    **{
        kind: lambda kind=kind, shape=shape, rest=rest: one(  # type: ignore[misc]
            kind,
            shape,
            18,
            *(r for r in rest if not isinstance(r, dict)),
            **next((r for r in rest if isinstance(r, dict)), {}),
        )
        for kind, (shape, *rest) in ALONE.items()
    },
    **{
        f"Pad {mode}": lambda mode=mode: one("Pad", [1, 3, 8, 8], 18, integers(0, 0, 1, 1, 0, 0, 1, 1), mode=mode)  # type: ignore[misc]
        for mode in ("reflect", "edge")
    },
    **{
        f"AveragePool, rounded up, {name}": lambda counted=counted: one(  # type: ignore[misc]
            "AveragePool",
            [1, 8, 10, 10],
            19,
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[0, 0, 0, 1],
            ceil_mode=1,
            count_include_pad=counted,
        )
        for name, counted in (("what is there", 0), ("padding too", 1))
    },
    "AveragePool of padding": lambda: one(
        "AveragePool", IMAGE, 18, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], count_include_pad=1
    ),
    "Resize of some axes": lambda: one("Resize", [1, 4, 8, 8], 18, None, floats(2, 1.5), axes=[2, 3], mode="linear"),
    "MaxPool with places that nothing reads": lambda: model_of(
        [helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 3])], {"x": IMAGE}, {"y": None}, []
    ),
    "Split into one": lambda: chain(ROWS, ("Split", "s", {"axis": 1}), ("Relu",), s=integers(50)),
    "MaxPool, rounded up": lambda: one("MaxPool", [1, 8, 10, 10], 18, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "LpPool, rounded up": lambda: one("LpPool", [1, 8, 10, 10], 18, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "LpPool, rounded up to the edge": lambda: one(
        "LpPool", [1, 8, 10, 10], 18, kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1
    ),
    "MaxPool, dilated": lambda: one("MaxPool", IMAGE, 18, kernel_shape=[3, 3], dilations=[2, 2]),
    "Conv of a line": lambda: one("Conv", [1, 8, 40], 18, drawn(16, 8, 3)),
    "Conv of a volume": lambda: one("Conv", [1, 4, 8, 8, 8], 18, drawn(8, 4, 3, 3, 3)),
    "Conv, dilated": lambda: one("Conv", IMAGE, 18, drawn(16, 8, 3, 3), dilations=[2, 2]),
    "Conv, grouped": lambda: one("Conv", [1, 16, 9, 9], 18, drawn(32, 4, 3, 3), group=4),
    "Conv, depthwise": lambda: one("Conv", IMAGE, 18, drawn(16, 1, 3, 3), group=8),
    "Conv, strided": lambda: one("Conv", [1, 3, 32, 32], 18, drawn(16, 3, 7, 7), strides=[2, 2], pads=[3, 3, 3, 3]),
    "Conv of a batch": lambda: one("Conv", [4, 16, 14, 14], 18, drawn(16, 16, 3, 3), pads=[1, 1, 1, 1]),
    "ConvTranspose": lambda: one("ConvTranspose", IMAGE, 18, drawn(8, 4, 3, 3), strides=[2, 2]),
    "ConvTranspose, grouped": lambda: one("ConvTranspose", IMAGE, 18, drawn(8, 4, 3, 3), strides=[2, 2], group=2),
    "GroupNorm of older exports": lambda: chain(
        [1, 8, 16, 16],
        ("Reshape", "r"),
        ("InstanceNormalization", "s", "b"),
        r=integers(1, 2, -1),
        s=drawn(2),
        b=drawn(2, seed=1),
    ),
    "Mish": lambda: chain(IMAGE, ("Softplus",), ("Tanh",), ("Mul", "x")),
    "ArgMax": lambda: chain(ROWS, ("ArgMax", {"axis": 1}), ("Cast", FLOAT)),
    "TopK in any order": lambda: model_of(
        [
            helper.make_node("TopK", ["x", "k"], ["v", "i"], sorted=0, largest=0),
            helper.make_node("ReduceSum", ["v"], ["y"]),
        ],
        {"x": ROWS},
        {"y": None},
        [constant("k", integers(5))],
    ),
    "OneHot": lambda: chain(
        ROWS, ("ArgMax", {"axis": 1, "keepdims": 0}), ("OneHot", "d", "v"), d=np.int64(50), v=floats(0, 1)
    ),
    "OneHot, multiplied": lambda: chain(
        ROWS,
        ("ArgMax", {"axis": 1, "keepdims": 0}),
        ("OneHot", "d", "v"),
        ("MatMul", "w"),
        d=np.int64(50),
        v=floats(0, 1),
        w=drawn(50, 7),
    ),
    "OneHot, its depth a list of one real number": lambda: chain(
        ROWS, ("ArgMax", {"axis": 1, "keepdims": 0}), ("OneHot", "d", "v"), d=floats(50), v=floats(0, 1)
    ),
    "IsInf of one sign": lambda: chain(
        ROWS, ("Div", "z"), ("IsInf", {"detect_negative": 0}), ("Cast", FLOAT), z=floats(0)
    ),
    "IsInf of the other": lambda: chain(
        ROWS, ("Div", "z"), ("IsInf", {"detect_positive": 0}), ("Cast", FLOAT), z=floats(0)
    ),
    "RoiAlign of a smaller picture": lambda: one(
        "RoiAlign",
        IMAGE,
        16,
        np.asarray([[2, 6, 40, 50], [9, 1, 30, 62]], np.float32),
        integers(0, 0),
        spatial_scale=0.25,
        output_height=3,
        output_width=3,
        sampling_ratio=2,
    ),
    "Not": lambda: chain(ROWS, ("Greater", "z"), ("Not",), ("Cast", FLOAT), z=np.float32(0.1)),
    "IsNaN": lambda: chain(ROWS, ("IsNaN",), ("Cast", FLOAT)),
    "attention's products": lambda: chain([2, 4, 16, 8], ("Transpose", {"perm": [0, 1, 3, 2]}), ("MatMul", "x")),
    "Abs, Log, Erf, Sqrt": lambda: chain(
        ROWS, ("Abs",), ("Add", "z"), ("Log",), ("Erf",), ("Abs",), ("Sqrt",), z=floats(1)
    ),
    "Pow of a whole exponent": lambda: one("Pow", ROWS, 18, np.int64(2)),
    "Pow of whole exponents": lambda: one("Pow", ROWS, 18, np.arange(50, dtype=np.int32) % 7 - 3),
    "Pow of a computed exponent": lambda: model_of(
        [helper.make_node("Cast", ["x"], ["e"], to=TensorProto.INT32), helper.make_node("Pow", ["x", "e"], ["y"])],
        {"x": ROWS},
        {"y": None},
        [],
    ),
    **{
        f"Pow of whole numbers, {kind.__name__}": lambda kind=kind: chain(  # type: ignore[misc]
            ROWS,
            ("Mul", "k"),
            ("Cast", {"to": TensorProto.INT64}),
            ("Pow", "e"),
            ("Mod", "m"),
            ("Cast", FLOAT),
            k=np.float32(2e4),
            e=kind(3),
            m=np.int64(10007),
        )
        for kind in (np.int64, np.float32)
    },
    "Pow, Sin, Cos": lambda: chain(ROWS, ("Abs",), ("Pow", "z"), ("Sin",), ("Cos",), z=np.float32(1.7)),
}
