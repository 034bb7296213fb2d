"""Tensors that are known by their integers, and the operators that make the real ones where somebody reads those."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Weights, attribute, rewired
from workers.networks.shape import sizes_of
from workers.networks.shapes import tensor_shapes


@dataclass(frozen=True)
class Scaled:
    """A real tensor: the tensor named `integers` times `scale`, one number or one a channel (with the tensor's rank).

    `span`: the least and the greatest integer it may hold; None where it holds others than integers, or any.
    """

    integers: str
    scale: Array
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class Stored:
    """A tensor of stored integers of type `dtype`: the float32 tensor named `integers`, within `span`, plus `zero`."""

    integers: str
    zero: Array
    dtype: int
    span: tuple[float, float] | None


class IntegerTensors:
    """The network's operators as they are written anew, in `nodes`, over its constants in `weights`.

    Rules put what they know of a tensor, by its name, into `scaled` or `stored`, and into `joined` the operator that
    concatenates tensors of `scaled` to it; `real` makes the tensor itself, and only where its integers do not do.
    """

    def __init__(self, model: ModelProto) -> None:
        self.nodes: list[NodeProto] = []
        self.weights = Weights(model.graph)
        self.scaled: dict[str, Scaled] = {}
        self.stored: dict[str, Stored] = {}
        self.joined: dict[str, NodeProto] = {}
        self._shapes = tensor_shapes(model)
        self._made: set[str] = set()

    def real(self, name: str) -> None:
        """Makes the tensor `name` itself, once, for a reader that cannot do with its integers."""
        if name in self._made:
            return
        if name in self.scaled:
            one = self.scaled[name]
            if one.integers in self.weights:
                self.weights.put(name, self.weights.get(one.integers) * one.scale)
            elif np.all(one.scale == 1):
                self.emit("Identity", [one.integers], name)
            else:
                self.emit("Mul", [one.integers, self.constant(f"{name}__scale", one.scale)], name)
        elif name in self.stored:
            kept = self.stored[name]
            self.emit("Cast", [self.shifted(kept.integers, kept.zero, f"{name}__stored")], name, to=kept.dtype)
        elif name in self.joined:
            for part in self.joined[name].input:
                self.real(part)
            self.nodes.append(self.joined[name])
        else:
            return
        self._made.add(name)

    def rounded(self, value: str, least: Array, levels: float, out: str) -> str:
        """To the nearest integer, of two the even one; from `least` to `least` + `levels`. A layout passes through Relu."""
        value = self.emit("Round", [value], f"{out}__round")
        value = self.emit("Relu", [self.shifted(value, -least, f"{out}__shifted")], f"{out}__above")
        room = self.emit("Sub", [self.constant(f"{out}__levels", np.asarray(levels)), value], f"{out}__room")
        left = self.emit("Relu", [room], f"{out}__left")
        return self.emit("Sub", [self.constant(f"{out}__greatest", least + levels), left], f"{out}__integers")

    def shifted(self, value: str, shift: Array, name: str) -> str:
        """`value` plus `shift`, as the tensor `name`; `value` itself where there is nothing to add."""
        if not np.any(shift):
            return value
        return self.emit("Add", [value, self.constant(f"{name}__by", shift)], name)

    def along(self, name: str, node: NodeProto) -> Array:
        """A constant scale or zero as float32: one number, or one a channel in the rank of the quantised tensor."""
        values = self.weights.get(name).astype(np.float32)
        return values.reshape(() if values.size == 1 else self._across(node, values.ndim))

    def across(self, name: str, node: NodeProto) -> str:
        """The same of one that is found at run time."""
        self.real(name)
        sizes = sizes_of(self._shapes, name)
        if math.prod(sizes) == 1:
            return name
        wanted = self.weights.put(f"{node.output[0]}__across", np.asarray(self._across(node, len(sizes)), np.int64))
        return self.emit("Reshape", [name, wanted], f"{node.output[0]}__of_{name}")

    def _across(self, node: NodeProto, rank: int) -> list[int]:
        """Sizes of one number a channel, in the rank of the quantised tensor, or in this one where that is not known."""
        shape = self._shapes.get(node.input[0])
        rank = len(shape.dims) if shape is not None and shape.dims is not None else rank
        axis = int(attribute(node, "axis", 1)) % rank
        return [-1 if place == axis else 1 for place in range(rank)]

    def constant(self, name: str, values: Array) -> str:
        """A new constant of float32 numbers; its name, which differs where `name` is taken."""
        return self.weights.put(name, np.asarray(values, np.float32))

    def rewire(self, node: NodeProto, inputs: Sequence[str], output: str) -> None:
        """The same operator between other tensors, of which all but the first are made real."""
        for name in inputs[1:]:
            self.real(name)
        self.nodes.append(rewired(node, inputs, output))

    def emit(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        """A new operator of one output, whose name it has and returns."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output
