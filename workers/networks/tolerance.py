"""How exactly a network's outputs can be expected again, by the numbers it computes in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from workers.networks.graph import HANDING_ON, Array, attribute, constants_of, makers_of
from workers.networks.halves import computes_in_halves
from workers.networks.precision import ROUNDING, WEIGHTS_ONLY, is_quantised
from workers.networks.shape import Dimension, TensorShape, shape_of
from workers.networks.shapes import tensor_shapes

_SUMMING = frozenset({"ConvInteger", "MatMulInteger"})
_REAL = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.UNDEFINED})
_WHOLE = frozenset(
    {TensorProto.UINT8, TensorProto.INT8, TensorProto.UINT16, TensorProto.INT16, TensorProto.UINT32, TensorProto.INT32}
) | {TensorProto.UINT64, TensorProto.INT64}
_MOST = 20.0  # of an exponent: what it comes to is all there is, and a number still
MANY = 8
"""Places of a TopK."""
LARGEST = 1 << 16
"""Elements of a scale: one a channel at most."""


@dataclass(frozen=True)
class Tolerance:
    """`relative`: how far an element may be off, as a share of the reference's largest absolute value.

    An output that was quantised last has a `step` instead, or one a channel along `axis`: an element may be `steps` of them
    off, and a `share` of the elements may be off at all. With `logarithms` the steps are those of the output's logarithm,
    and `relative` holds too. `labels` are the same or not, or within `steps` where they stand for measurements: a `share` of
    them may be another. `reason` says why differences arise.

    Along a `ranked` axis are rows in the order of their scores, as a TopK found them: of two that are nearly alike either may
    come first, and the last one may be another.
    """

    relative: float
    reason: str
    step: float | tuple[float, ...] = 0.0
    steps: int = 0
    share: float = 0.0
    axis: int = 1
    logarithms: bool = False
    labels: bool = False
    ranked: int | None = None

    def sizes(self, shape: tuple[int, ...]) -> Array:
        """The step of every element of an output of this shape, as it broadcasts."""
        sizes = np.atleast_1d(np.asarray(self.step, np.float64))
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        if sizes.size == 1 or not 0 <= axis < len(shape) or shape[axis] != sizes.size:
            return np.asarray(sizes.max())
        return sizes.reshape([-1 if place == axis else 1 for place in range(len(shape))])

    def at_least(self, relative: float, steps: float, share: float) -> Tolerance:
        """Widened to allow so much, whatever of it this kind of output is told by."""
        if self.labels:
            return replace(self, share=max(self.share, share))
        if not self.step:
            return replace(self, relative=max(self.relative, relative))
        wider = replace(self, steps=max(self.steps, round(steps)), share=max(self.share, share))
        return replace(wider, relative=max(self.relative, relative)) if self.logarithms else wider

    def __str__(self) -> str:
        return self._most() + (", rows of nearly the same score in either order" if self.ranked is not None else "")

    def _most(self) -> str:
        if self.labels and self.steps:
            return f"more than {self.steps} off in {100 * self.share:g} % of it"
        if self.labels:
            return f"another label in {100 * self.share:g} % of it"
        if self.step:
            sizes = np.unique(self.step)
            size = f"{sizes[0]:.3g}" + (f" to {sizes[-1]:.3g}" if len(sizes) > 1 else "")
            if self.logarithms:
                return f"{self.steps} quantisation steps of {size} of its logarithm"
            return f"{self.steps} quantisation steps of {size}, in {100 * self.share:g} % of it"
        return f"{100 * self.relative:.2g} % of the largest value"


SINGLE = Tolerance(1e-3, "kernels add in another order than the reference does")
HALF = Tolerance(
    20 * 2.0**-11,
    "the reference may round to float16, by up to 2^-11 of a value, behind every operator: over a hundred of them such "
    "errors add up to some ten roundings, and twice that is allowed",
)
STEPS, SHARE = 3, 0.4
"""Integer sums are exact, but where scaled numbers are added (a residual, an average) two orders of rounding part ways by
a step, and operators behind them pass that on: of ResNet-18's outputs 25 % differ by a step between ONNX Runtime with and
without its fusions, and 22 to 28 % by one or two between it and this product. Normal errors that take 40 % of the elements
to the next step take one in a thousand three steps away."""
TIES = "a number halfway between two quantisation steps may be rounded to either, and what follows passes the step on"
QUANTISED = Tolerance(STEPS / 255, f"{TIES}; behind the last quantisation, {STEPS} steps of an 8-bit range are allowed")
_DYNAMIC = "DynamicQuantizeLinear"


def rounded_anew(times: int) -> Tolerance:
    """Behind so many quantisations in a row whose scale is found when the network runs.

    With the largest number all are rounded to other steps, so that two orders of adding draw two roundings, one behind the
    other. Of transformers of 1, 2, 4, 6 and 12 layers, 4 quantisations each, quantising moves the output by 1.7, 2.9, 3.5, 4.6
    and 6.9 255ths of its largest value, which is the square root of their number; inputs that differ by 2^-22 of themselves
    move ONNX Runtime's own by up to 0.4, 1.4, 3.2, 5.0 and 5.7. Two that are drawn apart differ by the square root of 2 of what
    each is off.
    """
    steps = math.sqrt(2 * times)
    if steps <= STEPS:
        return QUANTISED
    return Tolerance(
        steps / 255,
        f"{times} quantisations in a row have scales that are found when the network runs: each may round all its numbers to "
        "other steps, by a 255th of the largest value, and such differences add up as a random walk does",
    )


ROUNDED = Tolerance(
    SINGLE.relative + 2.0**-10, "the output is rounded to float16, by up to 2^-11 of a value on each side"
)
BLOCKS = Tolerance(
    QUANTISED.relative,
    "the reference multiplies weights of 4 bits, or with a scale for every block, by 8-bit integers that it rounds the other "
    "factor to: 0.3 % of the largest value for 32 terms",
)
IN_INTEGERS = 4
"""The `accuracy_level` of such products at which ONNX Runtime does so; one that it puts together by itself has it."""
LABELS = {"float32": 1e-3, "float16": 0.01, "quantised": 0.05}
"""Shares of integers and truth values that may be others: those that two numbers decide which rounding may swap. Chosen, not
measured: a wrong network's labels differ in most places, and a single label must be the same."""


def tolerances(model: ModelProto) -> dict[str, Tolerance]:
    """By output of a checked network as it was uploaded, of the sizes that it has in a run."""
    shapes = tensor_shapes(model)
    quantised = is_quantised(model)
    half = not quantised and computes_in_halves(model, shapes)
    blocks = not quantised and _has_blocks(model, shapes)
    constants = _scales(model) if quantised else {}
    makers = makers_of(model.graph)
    times = _times(model) if quantised else {}
    ranks = _ranks(model, shapes)
    batches = {(shape_of(value).dims or (None,))[0] for value in model.graph.input}
    found = {}
    for value in model.graph.output:
        dtype = shapes[value.name].dtype if value.name in shapes else value.type.tensor_type.elem_type
        whole = _whole(value.name, makers, shapes) if dtype in _REAL else value.name
        if whole is not None:
            numbers = "quantised" if quantised or blocks else "float16" if half else "float32"
            steps = (1 if numbers == "float32" else STEPS) if _measured(whole, makers, shapes) else 0
            found[value.name] = _stored(whole, makers, numbers, rounded_anew(times.get(whole, 0)), steps)
        elif quantised:
            found[value.name] = _quantised(value.name, makers, constants, rounded_anew(times.get(value.name, 0)))
        else:
            found[value.name] = (
                BLOCKS if blocks else HALF if half else ROUNDED if dtype == TensorProto.FLOAT16 else SINGLE
            )
        ranked = _axis(ranks.get(value.name, frozenset()), shapes.get(value.name), batches)
        found[value.name] = replace(found[value.name], ranked=ranked)
    return found


def _axis(places: frozenset[int], shape: TensorShape | None, batches: Set[Dimension]) -> int | None:
    """Where the rows are that were ordered; not in the batch."""
    sizes = list(enumerate(shape.dims or ())) if shape is not None else []
    return next((axis for axis, size in sizes if size in places and not (axis == 0 and size in batches)), None)


def _ranks(model: ModelProto, shapes: Mapping[str, TensorShape]) -> dict[str, frozenset[int]]:
    """By tensor, how many places the TopKs had to give whose order it may have. The values that a TopK finds are in order
    whatever is nearly alike, and of few places hardly two are."""
    found: dict[str, frozenset[int]] = {}
    for node in model.graph.node:
        here = frozenset[int]().union(*(found.get(name, ()) for name in node.input))
        found |= dict.fromkeys(filter(None, node.output), here) if here else {}
        shape = shapes.get(node.output[1]) if node.op_type == "TopK" else None
        if shape is not None and shape.dims:
            places = shape.dims[attribute(node, "axis", -1)]
            if isinstance(places, int) and places >= MANY:
                found[node.output[1]] = here | {places}
    return found


def _scales(model: ModelProto) -> dict[str, Array]:
    """Constants that are small enough to be some."""
    stored = constants_of([model.graph]).items()
    return {
        name: np.asarray(numpy_helper.to_array(tensor)) for name, tensor in stored if math.prod(tensor.dims) <= LARGEST
    }


def _has_blocks(model: ModelProto, shapes: Mapping[str, TensorShape]) -> bool:
    """Whether weights are stored in 4 bits, or in blocks that have scales of their own, and the other factor is rounded too."""
    read = [
        node
        for node in model.graph.node
        if node.op_type == "DequantizeLinear" and attribute(node, "accuracy_level", IN_INTEGERS) == IN_INTEGERS
    ]
    few = {name for name, shape in shapes.items() if shape.dtype in WEIGHTS_ONLY}
    return any(attribute(node, "block_size", 0) or node.input[0] in few for node in read)


def _times(model: ModelProto) -> dict[str, int]:
    """By tensor, how many quantisations in a row are before it whose scale is found when the network runs."""
    found: dict[str, int] = {value.name: 0 for value in model.graph.input}
    for node in model.graph.node:
        before = max((found.get(name, 0) for name in node.input), default=0)
        found |= dict.fromkeys(filter(None, node.output), before + (node.op_type == _DYNAMIC))
    return found


def _whole(name: str, makers: dict[str, NodeProto], shapes: Mapping[str, TensorShape]) -> str | None:
    """The integers or truth values that leave as real numbers in `name`: classes, masks; None where it was real before."""
    maker = makers.get(_source(name, makers))
    if maker is None or maker.op_type != "Cast":
        return None
    before = shapes.get(maker.input[0])
    if before is not None and before.dtype not in _REAL:
        return str(maker.input[0])
    return _whole(maker.input[0], makers, shapes)


def _measured(name: str, makers: dict[str, NodeProto], shapes: Mapping[str, TensorShape]) -> bool:
    """Whether an output is real numbers that were cut off: the pixels of a picture, or places in it. Those that were whole
    before are labels on their way."""

    def real(cast: NodeProto) -> bool:
        before = shapes.get(cast.input[0])
        return before is not None and before.dtype in _REAL

    maker = makers.get(_source(name, makers))
    if maker is None or maker.op_type != "Cast" or attribute(maker, "to") not in _WHOLE or not real(maker):
        return False
    before = makers.get(_source(maker.input[0], makers))
    return before is None or before.op_type != "Cast" or real(before)


def _stored(name: str, makers: dict[str, NodeProto], numbers: str, summed: Tolerance, steps: int) -> Tolerance:
    """Of an output of integers or truth values: measurements where a quantisation made them, `summed` where they are sums of
    such, else labels; of those that were cut off, `steps` of them."""
    source = _source(name, makers)
    maker = makers.get(source)
    if maker is not None and maker.op_type in _SUMMING:
        return summed
    rounding = _behind_clip(maker, makers)
    if rounding is not None and rounding.op_type in ROUNDING:
        made = source if rounding is maker else makers[source].input[0]
        if rounding.output[0] == made:  # not the scale of one that finds it
            return Tolerance(0.0, TIES, 1.0, STEPS, SHARE)
    reason = "of two numbers that differ by less than their rounding either may be taken for the larger"
    return Tolerance(0.0, reason, steps=steps, share=LABELS[numbers], labels=True)


def _quantised(output: str, makers: dict[str, NodeProto], constants: dict[str, Array], without: Tolerance) -> Tolerance:
    """`without` a step that is known."""
    name = _source(output, makers)
    behind = makers.get(name)
    if behind is not None and behind.op_type == "Softmax":
        return _probabilities(_source(behind.input[0], makers), makers, constants, without)
    step = _step(name, makers, constants)
    if step is None:
        return without
    if step.size == 1 or step.ndim > 1 or name != output:
        return Tolerance(0.0, TIES, float(step.max()), STEPS, SHARE)
    return Tolerance(0.0, TIES, tuple(step.tolist()), STEPS, SHARE, attribute(makers[name], "axis", 1))


def _probabilities(
    exponents: str, makers: dict[str, NodeProto], constants: dict[str, Array], without: Tolerance
) -> Tolerance:
    """Behind a Softmax: a step of an exponent is a step of the logarithm, however large a share of the probability."""
    step = _step(exponents, makers, constants)
    if step is None:
        return without
    size, steps = float(step.max()), STEPS + 1  # those allowed in an exponent, and one in all the others
    relative = max(QUANTISED.relative, math.expm1(min(steps * size, _MOST)))
    return Tolerance(relative, f"{TIES}; Softmax takes the exponent of it", size, steps, 1.0, logarithms=True)


def _source(name: str, makers: dict[str, NodeProto]) -> str:
    """The tensor whose values those of `name` are."""
    while name in makers and makers[name].op_type in HANDING_ON:
        name = makers[name].input[0]
    return name


def _behind_clip(node: NodeProto | None, makers: dict[str, NodeProto]) -> NodeProto | None:
    """What rounded the numbers that a Clip cuts off, as PyTorch writes those of 7 bits; else the same."""
    before = makers.get(node.input[0]) if node is not None and node.op_type == "Clip" else None
    return before if before is not None and before.op_type in ROUNDING else node


def _step(name: str, makers: dict[str, NodeProto], constants: dict[str, Array]) -> Array | None:
    """Between the numbers that a tensor may hold, one or one a channel; None where it comes from no quantisation."""
    node = makers.get(name)
    if node is None or node.op_type != "DequantizeLinear" or node.input[1] not in constants:
        return None
    source = _behind_clip(makers.get(_source(node.input[0], makers)), makers)
    if source is not None and source.op_type not in ROUNDING - _SUMMING:
        return None
    step = np.abs(constants[node.input[1]].astype(np.float64))
    return step if step.all() else None
