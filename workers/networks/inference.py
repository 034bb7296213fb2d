"""Shapes of every tensor, operator by operator, each bounded before the next one is looked at.

The whole-graph inference of onnx with data propagation is not used on files of strangers: it writes out the values of
one-dimensional tensors as it goes, and Range(0, 10**15) followed by Add takes all memory. Here values are followed only
for small constants, by the operators with which exporters compute shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from workers.networks.errors import NetworkError
from workers.networks.graph import attribute, read_by
from workers.networks.limits import Limits
from workers.networks.precision import PAIRS
from workers.networks.shape import SMALL, TensorShape, shape_of
from workers.networks.structure import CONTRIBUTED
from workers.networks.subgraphs import subgraphs

Array = NDArray[Any]
Written = Callable[[NodeProto], Sequence[NodeProto]]
"""What stands in an operator's place."""

# What these make is as small as their outputs; others (a convolution with huge pads and strides) hide large ones.
_FOLLOWED = frozenset(
    "Abs Add And Cast Ceil Concat Constant ConstantOfShape Div Equal Expand Flatten Floor Gather Greater Identity Less "
    "Max Min Mod Mul Neg NonZero Not Or Pow Range ReduceProd Reshape Slice Sqrt Squeeze Sub Transpose Unsqueeze Where".split()
)
_MOST_FOLLOWED = 20_000
_RESIZING = ("Resize", "Upsample")
LIKE_FIRST = frozenset(
    "BiasGelu FastGelu Gelu GroupNormalization LayerNormalization MeanVarianceNormalization SkipLayerNormalization".split()
)
"""Operators that TVM imports and whose result is as their first input, of which ONNX has no schema in every operator set: ONNX
Runtime's own, a Gelu before 20 and a LayerNormalization before 17; those of a GroupNormalization and a
MeanVarianceNormalization tell no size."""


def _as_it_is(node: NodeProto) -> Sequence[NodeProto]:
    return [node]


class Inference:
    """Shapes by name of one model's main graph after `run`; `model` has no large weights and no local functions."""

    def __init__(self, model: ModelProto, limits: Limits) -> None:
        self.shapes: dict[str, TensorShape] = {}
        self._model = model
        self._limits = limits
        self._values: dict[str, Array] = {}
        self._elements = 0
        self._followed = 0
        self._opsets = {o.domain if o.domain != "ai.onnx" else "": o.version for o in model.opset_import}
        self._schemas: dict[tuple[str, str], Any] = {}

    def run(self, written: Written = _as_it_is) -> dict[str, TensorShape]:
        """Raises NetworkError as soon as a tensor, or all so far, would be too large. `written` is called with each operator of
        the main graph when `shapes` has what is before it, and returns those to go on with."""
        self._graph(self._model.graph, written)
        return self.shapes

    def _graph(self, graph: GraphProto, written: Written) -> None:
        for tensor in graph.initializer:
            self._keep(tensor.name, TensorShape(tensor.data_type, tuple(tensor.dims)))
            if self.shapes[tensor.name].elements <= SMALL and tensor.data_type != TensorProto.STRING:
                self._values[tensor.name] = np.asarray(numpy_helper.to_array(tensor))
        declared = {}
        for value in (*graph.value_info, *graph.output, *graph.input):
            if value.type.HasField("tensor_type"):
                declared[value.name] = shape_of(value)
        for value in graph.input:
            if value.name in declared and value.name not in self._values:
                self._keep(value.name, declared[value.name])
        for node in graph.node:
            for one in written(node):
                self._node(one, declared)

    def _node(self, node: NodeProto, declared: Mapping[str, TensorShape]) -> None:
        for inner in subgraphs(node):
            self._graph(inner, _as_it_is)
        inferred = self._inferred(node)
        for name in filter(None, node.output):
            shape = inferred.get(name)
            if shape is None or shape.dims is None or (shape.static is None and name in declared):
                shape = _better(declared.get(name), shape)
            if shape is not None:
                self._keep(name, shape)
        self._follow(node)

    def _inferred(self, node: NodeProto) -> dict[str, TensorShape]:
        """What the operator's schema says; nothing where it does not fit or is not known."""
        if node.domain == CONTRIBUTED and node.op_type in PAIRS:
            return self._stored(node)
        schema = self._schema(node)
        if node.op_type in LIKE_FIRST and (like := self._like_first(node)):
            return like
        if schema is None:
            return {}
        names = [name for name in read_by(node) if name in self.shapes]
        types = {name: _type(self.shapes[name]) for name in names}
        data = {name: numpy_helper.from_array(self._values[name], name) for name in names if name in self._values}
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                node,
                types,
                data,
                opset_imports=list(self._model.opset_import),
                ir_version=self._model.ir_version,
            )
        except Exception:  # onnx raises several unrelated types; the framework that runs the network will be clearer
            return {}
        made = {name: _shape(kind) for name, kind in found.items() if kind.HasField("tensor_type")}
        return {name: self._resized(node, shape) for name, shape in made.items()} if node.op_type in _RESIZING else made

    def _resized(self, node: NodeProto, found: TensorShape) -> TensorShape:
        """`found` by ONNX, in as many pixels as ONNX Runtime makes, which counts in float32: of 160 by 0.9 that is one more."""
        place = 2 if len(node.input) > 2 else 1  # in older operator sets nothing is between them
        read, scales = self.shapes.get(node.input[0]), self._values.get("".join(node.input[place : place + 1]))
        region = attribute(node, "coordinate_transformation_mode") == b"tf_crop_and_resize"
        if read is None or read.static is None or found.static is None or scales is None or region:
            return found
        sizes = list(found.static)
        for axis, scale in zip(attribute(node, "axes", range(len(sizes))), scales.reshape(-1), strict=False):
            sizes[axis] += int(np.floor(np.float32(read.static[axis]) * scale) == sizes[axis] + 1)
        return TensorShape(found.dtype, tuple(sizes))

    def _stored(self, node: NodeProto) -> dict[str, TensorShape]:
        """As ONNX's own, which took numbers of 16 bits later, say: of the first input's sizes, the type by the scale's, or
        where it is stored by the zero's."""
        read = [self.shapes.get(name) for name in node.input]
        if len(read) < 2 or read[0] is None:
            return {}
        by = read[1] if node.op_type == "DequantizeLinear" else read[2] if len(read) > 2 else None
        kind = by.dtype if by else TensorProto.UINT8 if node.op_type == "QuantizeLinear" else TensorProto.FLOAT
        return {node.output[0]: TensorShape(kind, read[0].dims)}

    def _like_first(self, node: NodeProto) -> dict[str, TensorShape]:
        """Its first input's shape, where no other has more axes; so is the sum that is normalised, the fourth output."""
        read = [self.shapes.get(name) for name in node.input if name]
        ranks = [len(shape.dims) for shape in read if shape is not None and shape.dims is not None]
        if not read or read[0] is None or len(ranks) < len(read) or max(ranks) > ranks[0]:
            return {}
        return dict.fromkeys((node.output[0], *node.output[3:]), read[0])

    def _schema(self, node: NodeProto) -> Any:
        domain = node.domain if node.domain != "ai.onnx" else ""
        key = (node.op_type, domain)
        if key not in self._schemas:
            try:
                self._schemas[key] = onnx.defs.get_schema(node.op_type, int(self._opsets.get(domain, 1)), domain)
            except onnx.defs.SchemaError:
                self._schemas[key] = None
        return self._schemas[key]

    def _keep(self, name: str, shape: TensorShape) -> None:
        dims = list(shape.dims or ())
        if len(dims) > self._limits.rank:
            raise NetworkError(name, f"it has {len(dims)} dimensions, {self._limits.rank} are allowed", "reshape it")
        if any(isinstance(d, int) and d < 0 for d in dims):
            raise NetworkError(name, f"its shape {dims} has a negative dimension", "correct the operator that makes it")
        if shape.elements > self._limits.tensor_elements:
            reason = f"its shape {dims} has {shape.elements} elements, more than {self._limits.tensor_elements}"
            raise NetworkError(name, reason, "use smaller shapes")
        self._elements += shape.elements
        if self._elements > self._limits.total_elements:
            reason = f"its tensors have more than {self._limits.total_elements} elements together"
            raise NetworkError("the network", reason, "use a smaller batch or network")
        self.shapes[name] = shape

    def _follow(self, node: NodeProto) -> None:
        """The value of a small result of constants, for the shapes that are computed from it."""
        if node.op_type == "NonZero" and node.input[0] in self._values:
            found = np.asarray(np.nonzero(np.atleast_1d(self._values[node.input[0]])))
            self._keep(node.output[0], TensorShape(TensorProto.INT64, found.shape))
        shape = self.shapes.get(node.output[0]) if node.output else None
        if shape is None or shape.static is None or shape.elements > SMALL or self._followed >= _MOST_FOLLOWED:
            return
        if node.op_type == "Shape":
            value = shape_value(node, self.shapes)
        elif node.op_type in _FOLLOWED and all(name in self._values for name in node.input if name):
            self._followed += 1
            results = evaluate(node, self._values, list(self._model.opset_import))
            value = results[0] if results is not None and results[0].size <= SMALL else None
        else:
            value = None
        if value is not None:
            self._values[node.output[0]] = value


def shape_value(node: NodeProto, shapes: Mapping[str, TensorShape]) -> Array | None:
    """Result of a Shape operator on a tensor of static shape."""
    shape = shapes.get(node.input[0]) if node.input else None
    if shape is None or shape.static is None:
        return None
    bounds = {a.name: a.i for a in node.attribute}
    rank = len(shape.static)
    start, end, _ = slice(bounds.get("start", 0), bounds.get("end", rank)).indices(rank)
    return np.asarray(shape.static[start:end], np.int64)


def evaluate(node: NodeProto, values: Mapping[str, Array], opsets: list[Any]) -> list[Array] | None:
    """Outputs of one operator on constant inputs; None where the reference implementation cannot."""
    names = list(dict.fromkeys(filter(None, node.input)))
    try:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            return [np.asarray(numpy_helper.to_array(node.attribute[0].t))]
        inputs = {name: values[name] for name in names}
        graph = helper.make_graph(
            [node],
            "constant",
            [
                helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), None)
                for n, a in inputs.items()
            ],
            [helper.make_tensor_value_info(n, 0, None) for n in node.output],
        )
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets)).run(None, inputs)
    except Exception:  # an operator that the reference does not know simply stays
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    return [np.asarray(result) for result in results]


def _better(declared: TensorShape | None, inferred: TensorShape | None) -> TensorShape | None:
    if declared is None or inferred is None:
        return inferred or declared
    return declared if declared.static is not None or inferred.dims is None else inferred


def _type(shape: TensorShape) -> TypeProto:
    return helper.make_tensor_type_proto(shape.dtype, None if shape.dims is None else list(shape.dims))


def _shape(kind: TypeProto) -> TensorShape:
    return shape_of(onnx.ValueInfoProto(type=kind))
