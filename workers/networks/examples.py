"""Networks that are there without a download: the light models of the onnx package with random weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto

from workers.networks.errors import NetworkError
from workers.networks.folding import fold_constants
from workers.networks.graph import Array, Weights, attribute, prune
from workers.networks.rewriting import drop_unused_inputs, drop_weight_inputs

EXAMPLES = {
    "squeezenet": "squeezenet",
    "resnet50": "resnet50",
    "alexnet": "bvlc_alexnet",
    "vgg19": "vgg19",
    "densenet121": "densenet121",
    "inception_v1": "inception_v1",
    "shufflenet": "shufflenet",
}
"""Name here -> file light_<name>.onnx of the onnx package; all of them take 1 x 3 x 224 x 224."""

_CENTRED = 16
"""Fan-in from which a filter can lose its mean and keep its variety."""
_AFFINE = frozenset({"BatchNormalization", "Mul", "Add"})
_STRAIGHT = _AFFINE | {"Relu", "GlobalAveragePool", "AveragePool", "Reshape", "Flatten", "Dropout"}
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


def example(name: str, seed: int = 0) -> ModelProto:
    """One of EXAMPLES with seeded random weights; NetworkError for another name."""
    if name not in EXAMPLES:
        raise NetworkError(name, "there is no example of this name", f"choose one of {', '.join(EXAMPLES)}")
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    model = onnx.load(folder / f"light_{EXAMPLES[name]}.onnx", load_external_data=False)
    model.producer_name = f"light_{EXAMPLES[name]} of the onnx package, random weights"
    return random_weights(model, seed)


def example_bytes(name: str, seed: int = 0) -> bytes:
    """`example` as the content of an .onnx file."""
    content = example(name, seed).SerializeToString(deterministic=True)
    return bytes(content)


def random_weights(model: ModelProto, seed: int) -> ModelProto:
    """A copy whose weights are random, scaled so that signals neither vanish nor explode.

    Kernels: normal, their variance by fan-in (He et al. 2015, Delving Deep into Rectifiers, section 2.2). Those of
    convolutions have mean 0 in every filter: the positive mean that each Relu leaves would else drown what the input
    says, so the gain before a Relu is 2 / (1 - 1/pi), about 3, instead of 2. Biases and statistics of normalisations:
    moderate, different for every channel. A constant weight would hide swapped axes and permuted layouts from every
    comparison of outputs.
    """
    work = ModelProto()
    work.CopyFrom(model)
    drop_weight_inputs(work)
    drop_unused_inputs(work)
    fold_constants(work)
    graph = work.graph
    roles = _roles(graph.node)
    weights = Weights(graph)
    random = np.random.default_rng(seed)
    replaced = 0
    for tensor in graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name in roles:
            values = _values(random, weights.get(tensor.name).shape, roles[tensor.name])
            tensor.CopyFrom(onnx.numpy_helper.from_array(values.astype(np.float32), tensor.name))
            replaced += 1
    if not replaced:
        raise NetworkError(
            "the network", "it has no weights to replace", "use a network with convolutions or matrix products"
        )
    prune(work)
    return work


@dataclass(frozen=True)
class _Role:
    """Where a constant is read: operator, position, the kind that comes next, and is it the last product."""

    node: NodeProto
    position: int
    next: str
    last: bool


def _roles(nodes: Sequence[NodeProto]) -> dict[str, _Role]:
    readers: dict[str, list[NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def following(node: NodeProto) -> str:
        """The next operator that is no scale or shift by channel; a Relu among several wins, it halves the signal."""
        found = {r.op_type if r.op_type not in _AFFINE else following(r) for r in readers.get(node.output[0], ())}
        return next((kind for kind in ("Relu", "Clip", "Sum") if kind in found), "")

    def ends(node: NodeProto) -> bool:
        """A Softmax is reached without another product in between, in a straight line."""
        after = readers.get(node.output[0], ())
        return len(after) == 1 and (after[0].op_type == "Softmax" or (after[0].op_type in _STRAIGHT and ends(after[0])))

    return {
        name: _Role(node, position, following(node), ends(node))
        for node in nodes
        if node.op_type in _PRODUCTS | _AFFINE
        for position, name in enumerate(node.input)
    }


def _values(random: np.random.Generator, shape: tuple[int, ...], role: _Role) -> Array:
    if role.node.op_type == "BatchNormalization":
        return _statistics(random, shape, role)
    if role.node.op_type == "Mul":
        return random.uniform(0.8, 1.2, shape)
    if role.node.op_type == "Add" or role.position != 1 or len(shape) < 2:
        return random.normal(0.0, 0.1, shape)
    fan_in = _fan_in(role.node, shape)
    kernel = random.normal(0.0, 1.0, shape)
    gain = {"Relu": 3.0, "Clip": 3.0}.get(role.next, 1.0) * (0.1 if role.last else 1.0)
    if role.node.op_type == "Conv" and fan_in >= _CENTRED:
        kernel -= kernel.mean(axis=tuple(range(1, len(shape))), keepdims=True)
    return np.asarray(kernel * np.sqrt(gain / fan_in))


def _statistics(random: np.random.Generator, shape: tuple[int, ...], role: _Role) -> Array:
    """Scale, bias, mean and variance; branches that are added up are weakened, so that their sum keeps its size."""
    if role.position == 1:
        return random.uniform(0.4, 0.8, shape) if role.next == "Sum" else random.uniform(0.7, 1.3, shape)
    if role.position == 4:
        return random.uniform(0.5, 1.5, shape)
    return random.normal(0.0, 0.1, shape)


def _fan_in(node: NodeProto, shape: tuple[int, ...]) -> int:
    if node.op_type == "Gemm":
        return shape[1] if attribute(node, "transB", 0) else shape[0]
    if node.op_type == "MatMul":
        return shape[-2]
    if node.op_type == "ConvTranspose":
        return shape[0]
    return int(np.prod(shape[1:]))
