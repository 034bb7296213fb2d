"""Networks for tests and benchmarks: seeded, written once into a directory that the caller gives, found there again.

Every function takes that directory and returns the path of an .onnx file.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from workers.baselines.inputs import seeded_inputs
from workers.networks.check import load
from workers.networks.examples import EXAMPLES, example, example_bytes
from workers.networks.inspect import inspect_model

SEED = 0


def light(cache: Path, name: str) -> Path:
    """One of the product's examples: squeezenet, resnet50, alexnet, vgg19, densenet121, inception_v1, shufflenet."""
    return _cached(cache, name, lambda: example_bytes(name, SEED))


def squeezenet(cache: Path) -> Path:
    return light(cache, "squeezenet")


def bvlc_alexnet(cache: Path) -> Path:
    return light(cache, "alexnet")


def vgg19(cache: Path) -> Path:
    """575 MB."""
    return light(cache, "vgg19")


def vgg16(cache: Path) -> Path:
    """553 MB."""
    return _cached(cache, "vgg16", lambda: _bytes(_vgg16()))


def resnet50(cache: Path) -> Path:
    return light(cache, "resnet50")


def resnet18(cache: Path) -> Path:
    """1 x 3 x 224 x 224, random BatchNormalization statistics, exported from PyTorch."""
    return _cached(cache, "resnet18", lambda: _exported(_resnet18, (1, 3, 224, 224)))


def transformer_encoder(cache: Path) -> Path:
    """6 layers, 128 tokens, width 512, 8 heads, GELU feed-forward 2048; input 1 x 128 x 512."""
    return _cached(cache, "transformer_encoder", lambda: _exported(_encoder, (1, 128, 512)))


def mobilenet_like(cache: Path) -> Path:
    """Depthwise separable blocks with ReLU6 and BatchNormalization; input 1 x 3 x 64 x 64."""
    return _cached(cache, "mobilenet_like", lambda: _exported(_mobilenet, (1, 3, 64, 64)))


def mobilenet(cache: Path) -> Path:
    """MobileNet's 13 blocks with ReLU6; input 1 x 3 x 224 x 224."""
    return _cached(cache, "mobilenet", lambda: _exported(_mobilenet_v1, (1, 3, 224, 224)))


def tiny(cache: Path) -> Path:
    """Convolution, Relu, MaxPool, Gemm on 1 x 16 x 14 x 14: milliseconds to import."""
    return _cached(cache, "tiny", lambda: _bytes(_tiny()))


def tiny_residual(cache: Path) -> Path:
    """Two convolutions and a Sum of two, 16 channels of 14 x 14, batch size left open as N."""
    return _cached(cache, "tiny_residual", lambda: _bytes(_tiny_residual()))


def half(cache: Path, name: str, borders: str = "float16") -> Path:
    """A network of ZOO with float16 weights and activations; with `borders` float32, Casts stand around it."""
    return _cached(cache, f"{name}_half_{borders}", lambda: _bytes(_halved(ZOO[name](cache), borders == "float16")))


def quantised(cache: Path, name: str, form: str = "QDQ", per_channel: bool = False, softmax: bool = False) -> Path:
    """A network of ZOO as ONNX Runtime quantises it, int8 weights and uint8 activations calibrated on seeded inputs.

    `form`: QDQ, QOperator, or dynamic (scales of the activations found at run time). `softmax`: that too, which makes one of
    many classes all zeros.
    """
    suffix = ("_channels" if per_channel else "") + ("_softmax" if softmax else "")
    return _cached(cache, f"{name}_{form}{suffix}", lambda: _quantised(ZOO[name](cache), form, per_channel, softmax))


def tiny_attention(cache: Path) -> Path:
    """Two projections, their product, Softmax and a sum, 12 tokens of 32: products of activations among them."""
    return _cached(cache, "tiny_attention", lambda: _bytes(_tiny_attention()))


def tiny_detector(cache: Path) -> Path:
    """Two convolutions with SiLU and a Softmax over their channels, 16 of 14 x 14, and one more."""
    return _cached(cache, "tiny_detector", lambda: _bytes(_tiny_detector()))


ZOO: dict[str, Callable[[Path], Path]] = {
    "tiny": tiny,
    "tiny_residual": tiny_residual,
    "tiny_attention": tiny_attention,
    "tiny_detector": tiny_detector,
    "squeezenet": squeezenet,
    "mobilenet_like": mobilenet_like,
    "mobilenet": mobilenet,
    "resnet18": resnet18,
    "transformer_encoder": transformer_encoder,
    "resnet50": resnet50,
    "bvlc_alexnet": bvlc_alexnet,
    "vgg16": vgg16,
    "vgg19": vgg19,
    **{
        name: (lambda cache, name=name: light(cache, name))
        for name in EXAMPLES
        if name not in ("squeezenet", "resnet50", "alexnet", "vgg19")
    },  # type: ignore[misc]
}


def _cached(cache: Path, name: str, content: Callable[[], bytes]) -> Path:
    path = cache / f"{name}.onnx"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.partial")  # others may be making the same
        partial.write_bytes(content())
        partial.replace(path)
    return path


def _bytes(model: ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))


def constant(name: str, values: Any) -> TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(values), name)


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    weights: list[TensorProto],
    opset: int = 17,
) -> ModelProto:
    """A float32 network."""
    ports = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in p.items()] for p in (inputs, outputs)]
    graph = helper.make_graph(nodes, "network", *ports, initializer=weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def shaped_like() -> ModelProto:
    """x1 and a one for every element of x2, of which only the shape is read."""
    nodes = [
        helper.make_node("Shape", ["x2"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"], value=constant("", np.ones(1, np.float32))),
        helper.make_node("Add", ["x1", "c"], ["y"]),
    ]
    return model_of(nodes, {"x1": [1, 8], "x2": [1, 8]}, {"y": [1, 8]}, [])


def _normal(random: np.random.Generator, name: str, *shape: int) -> TensorProto:
    fan_in = int(np.prod(shape[1:])) or 1
    return constant(name, (random.standard_normal(shape) * np.sqrt(2 / fan_in)).astype(np.float32))


def _vgg16() -> ModelProto:
    """VGG-19 without the fourth convolution of its last three blocks (Simonyan & Zisserman 2015, Table 1: E and D)."""
    model = example("vgg19", SEED)
    graph = model.graph
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    for convolution in (convolutions[place] for place in (7, 11, 15)):
        relu = next(node for node in graph.node if convolution.output[0] in node.input)
        for reader in graph.node:
            reader.input[:] = [convolution.input[0] if n == relu.output[0] else n for n in reader.input]
        graph.node.remove(convolution)
        graph.node.remove(relu)
    read = {name for node in graph.node for name in node.input}
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in read:
            del graph.initializer[place]
    return model


def _tiny() -> ModelProto:
    random = np.random.default_rng(SEED)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "v", "d"], ["y"], transB=1),
    ]
    weights = [
        _normal(random, "w", 16, 16, 3, 3),
        _normal(random, "b", 16),
        _normal(random, "v", 10, 784),
        _normal(random, "d", 10),
    ]
    return model_of(nodes, {"x": [1, 16, 14, 14]}, {"y": [1, 10]}, weights)


def _tiny_residual() -> ModelProto:
    random = np.random.default_rng(SEED)
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Sum", ["c1", "x"], ["y"]),
    ]
    weights = [_normal(random, "w0", 16, 16, 3, 3), _normal(random, "w1", 16, 16, 3, 3)]
    return model_of(nodes, {"x": ["N", 16, 14, 14]}, {"y": ["N", 16, 14, 14]}, weights)


def _tiny_detector() -> ModelProto:
    random, last = np.random.default_rng(SEED), "x"
    nodes = []
    for place in range(2):
        nodes += [
            helper.make_node("Conv", [last, f"w{place}"], [f"c{place}"], pads=[1, 1, 1, 1]),
            helper.make_node("Sigmoid", [f"c{place}"], [f"s{place}"]),
            helper.make_node("Mul", [f"c{place}", f"s{place}"], [f"m{place}"]),
            helper.make_node("Softmax", [f"m{place}"], [last := f"p{place}"], axis=1),
        ]
    nodes.append(helper.make_node("Conv", [last, "w2"], ["y"], pads=[1, 1, 1, 1]))
    weights = [_normal(random, f"w{place}", 16, 16, 3, 3) for place in range(3)]
    return model_of(nodes, {"x": [1, 16, 14, 14]}, {"y": [1, 16, 14, 14]}, weights)


def _tiny_attention() -> ModelProto:
    random = np.random.default_rng(SEED)
    nodes = [
        helper.make_node("MatMul", ["x", "wq"], ["q"]),
        helper.make_node("MatMul", ["x", "wk"], ["k"]),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "x"], ["m"]),
        helper.make_node("Add", ["m", "x"], ["y"]),
    ]
    weights = [_normal(random, "wq", 32, 32), _normal(random, "wk", 32, 32)]
    return model_of(nodes, {"x": [1, 12, 32]}, {"y": [1, 12, 32]}, weights)


def _halved(path: Path, borders: bool) -> ModelProto:
    """`borders`: whether inputs and outputs become float16 too."""
    model = onnx.load(path)
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in graph.node:
        for found in node.attribute:
            if found.HasField("t") and found.t.data_type == TensorProto.FLOAT:
                found.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(found.t).astype(np.float16)))
    del graph.value_info[:]
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT and (borders or value.name in weights):
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    if not borders:
        heads, tails = {value.name for value in inputs}, {value.name for value in graph.output}
        for node in graph.node:
            node.input[:] = [f"{name}_half" if name in heads else name for name in node.input]
            node.output[:] = [f"{name}_half" if name in tails else name for name in node.output]
        nodes = [helper.make_node("Cast", [n], [f"{n}_half"], to=TensorProto.FLOAT16) for n in sorted(heads)]
        ends = [helper.make_node("Cast", [f"{n}_half"], [n], to=TensorProto.FLOAT) for n in sorted(tails)]
        copy = onnx.GraphProto(node=[*nodes, *graph.node, *ends])
        del graph.node[:]
        graph.node.extend(copy.node)
    return model


class _Calibration:
    """Seeded inputs for ONNX Runtime's calibration, one after the other until None."""

    def __init__(self, path: Path) -> None:
        described = inspect_model(load(path))
        self._left = [seeded_inputs(described, 100 + number) for number in range(4)]

    def get_next(self) -> Any:
        return self._left.pop() if self._left else None


@contextmanager
def _errors_alone() -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def _quantised(path: Path, form: str, per_channel: bool, softmax: bool = False) -> bytes:
    import tempfile

    from onnxruntime import quantization as quantising
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), _errors_alone():
        warnings.simplefilter("ignore")
        prepared, made = Path(folder, "prepared.onnx"), Path(folder, "made.onnx")
        quant_pre_process(path, prepared, skip_symbolic_shape=True)
        if form == "dynamic":
            quantising.quantize_dynamic(prepared, made, weight_type=quantising.QuantType.QInt8)
        else:
            found = {node.op_type for node in onnx.load(prepared).graph.node}
            kinds = sorted(found if softmax else found - {"Softmax"})
            quantising.quantize_static(
                prepared, made, _Calibration(path), quant_format=quantising.QuantFormat[form], per_channel=per_channel,
                op_types_to_quantize=kinds,
                activation_type=quantising.QuantType.QUInt8, weight_type=quantising.QuantType.QInt8,
            )  # fmt: skip
        return made.read_bytes()


def _exported(build: Callable[[Any], Any], shape: tuple[int, ...]) -> bytes:
    """The PyTorch module of `build(torch)` as ONNX, static shapes, nothing folded by the exporter."""
    import io

    import torch

    with torch.random.fork_rng(), warnings.catch_warnings():
        # The exporter that writes one file from memory is the one that PyTorch calls outdated.
        warnings.simplefilter("ignore")
        torch.manual_seed(SEED)
        network = build(torch).eval()
        file = io.BytesIO()
        torch.onnx.export(
            network, (torch.zeros(shape),), file, dynamo=False, opset_version=17, do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE, input_names=["x"], output_names=["y"],
        )  # fmt: skip
    return file.getvalue()


def _norm(torch: Any, channels: int, scale: float) -> Any:
    """BatchNormalization with random statistics around `scale`: the defaults (0 and 1) hide a wrong folding."""
    layer = torch.nn.BatchNorm2d(channels)
    with torch.no_grad():
        layer.weight.uniform_(0.7 * scale, 1.3 * scale)
        layer.bias.normal_(0.0, 0.1)
        layer.running_mean.normal_(0.0, 0.1)
        layer.running_var.uniform_(0.5, 1.5)
    return layer


def _conv(
    torch: Any,
    inputs: int,
    outputs: int,
    size: int,
    stride: int = 1,
    groups: int = 1,
    act: Any = None,
    scale: float = 1.0,
) -> Any:
    conv = torch.nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    torch.nn.init.kaiming_normal_(conv.weight)
    return torch.nn.Sequential(conv, _norm(torch, outputs, scale), *([act] if act is not None else []))


def _resnet18(torch: Any) -> Any:
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inputs: int, outputs: int, stride: int) -> None:
            super().__init__()
            self.branch = nn.Sequential(
                _conv(torch, inputs, outputs, 3, stride, act=nn.ReLU()), _conv(torch, outputs, outputs, 3, scale=0.5)
            )
            self.short = (
                nn.Identity()
                if stride == 1 and inputs == outputs
                else _conv(torch, inputs, outputs, 1, stride, scale=0.5)
            )

        def forward(self, x: Any) -> Any:
            return torch.relu(self.branch(x) + self.short(x))

    widths = [
        (64, 64, 1),
        (64, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
        (128, 256, 2),
        (256, 256, 1),
        (256, 512, 2),
        (512, 512, 1),
    ]
    return nn.Sequential(
        _conv(torch, 3, 64, 7, 2, act=nn.ReLU()), nn.MaxPool2d(3, 2, 1), *(Block(*w) for w in widths),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000),
    )  # fmt: skip


def _mobilenet(torch: Any) -> Any:
    return _depthwise(torch, 16, [(32, 1), (64, 2), (64, 1), (128, 2)], 100)


def _mobilenet_v1(torch: Any) -> Any:
    widths = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]
    return _depthwise(torch, 32, widths, 1000)


def _depthwise(torch: Any, inputs: int, blocks: list[tuple[int, int]], classes: int) -> Any:
    """A convolution of stride 2 to `inputs` channels, then depthwise separable blocks of (channels, stride)."""
    nn = torch.nn
    layers = [_conv(torch, 3, inputs, 3, 2, act=nn.ReLU6())]
    for outputs, stride in blocks:
        layers.append(_conv(torch, inputs, inputs, 3, stride, groups=inputs, act=nn.ReLU6()))
        layers.append(_conv(torch, inputs, outputs, 1, act=nn.ReLU6()))
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def _encoder(torch: Any) -> Any:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.1, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    for parameter in encoder.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        else:
            # Layers are copies of one another otherwise, and biases zero.
            nn.init.normal_(parameter, 1.0 if parameter.data.mean() > 0.5 else 0.0, 0.05)
    return encoder
