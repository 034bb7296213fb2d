"""LSTM, GRU and RNN written out step by step: TVM has no recurrent operators, and sizes here are fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Array, Weights, attribute, rewrite, told
from workers.networks.inspect import opset
from workers.networks.opsets import OLDEST
from workers.networks.shapes import tensor_shapes

STEPS = 64
"""Most that are written out: every one is some fifteen operators."""
ACTIVATIONS = {"LSTM": [b"sigmoid", b"tanh", b"tanh"], "GRU": [b"sigmoid", b"tanh"], "RNN": [b"tanh"]}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ODD = ("clip", "input_forget", "layout", "activation_alpha", "activation_beta")


def recurrences_to_steps(model: ModelProto) -> str | None:
    """Each recurrent operator with constant weights, ONNX's default activations, or Relu in an RNN, and STEPS steps at most;
    others stay."""
    if opset(model) < OLDEST or not any(node.op_type in ACTIVATIONS for node in model.graph.node):
        return None
    weights, shapes = Weights(model.graph), tensor_shapes(model)

    def stepwise(node: NodeProto) -> list[NodeProto]:
        found = shapes.get(node.input[0]) if node.op_type in ACTIVATIONS else None
        if found is None or found.static is None or not _plain(node, found.static[0], weights):
            return []
        return _Steps(node, weights, found.static).nodes

    written = rewrite(model.graph, stepwise)
    return told(
        written,
        "recurrent operator was written out step by step",
        "recurrent operators were written out step by step",
    )


def _plain(node: NodeProto, steps: int, weights: Weights) -> bool:
    """Whether the operator can be written out."""
    _, taken, kept, bias, lengths, _, _, peepholes = _inputs(node)
    if steps > STEPS or peepholes or any(name not in weights for name in (taken, kept, bias) if name):
        return False
    if lengths and not (lengths in weights and np.all(weights.get(lengths) == steps)):
        return False
    usual = ACTIVATIONS[node.op_type]
    given = [name.lower() for name in attribute(node, "activations", usual)]
    rectified = node.op_type == "RNN" and set(given) == {b"relu"}
    return (rectified or given in (usual, usual * 2)) and not any(attribute(node, name) for name in _ODD)


def _inputs(node: NodeProto) -> list[str]:
    """X, W, R, B, sequence_lens, initial_h, initial_c and P by ONNX's names; empty where there is none."""
    return [*node.input, *[""] * 8][:8]


class _Steps:
    """One operator's replacement in `nodes`, with the equations and the order of gates of ONNX's definitions.

    The products with all inputs are one matrix product in front. States are 1 x batch x width all along, as a step of the
    output is; constants are shared, so that all steps are the same operators to the compiler.
    """

    def __init__(self, node: NodeProto, weights: Weights, shape: Sequence[int]) -> None:
        self.nodes: list[NodeProto] = []
        self._weights = weights
        self._name = next(name for name in node.output if name)
        self._source, taken, kept, bias, _, *self._initial, _ = _inputs(node)
        self._activation = attribute(node, "activations", [b"Tanh"])[0].decode().capitalize()  # of an RNN
        self._after_reset = bool(attribute(node, "linear_before_reset", 0))
        following: dict[str, Callable[..., tuple[str, str]]] = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}
        self._next = following[node.op_type]
        matrices, recurrent = weights.get(taken), weights.get(kept)
        self._directions = len(recurrent)
        self._width = int(recurrent.shape[-1])
        biases = weights.get(bias) if bias else np.zeros((len(recurrent), 2 * recurrent.shape[1]), recurrent.dtype)
        self._zeros = self._put(np.zeros((1, shape[1], self._width), recurrent.dtype))
        self._ends = [self._put([gate * self._width]) for gate in range(_GATES[node.op_type] + 1)]
        self._one, self._last_axis = self._put([1]), self._put([2])
        self._steps = shape[0]
        direction = attribute(node, "direction", b"forward")
        backwards = {b"forward": [False], b"reverse": [True]}.get(direction, [False, True])
        found = [
            self._direction(place, back, matrices[place].T, recurrent[place].T, biases[place])
            for place, back in enumerate(backwards)
        ]
        for result, parts, axis in zip(node.output, zip(*found, strict=True), (1, 0, 0), strict=False):
            if result:
                self.nodes.append(helper.make_node("Concat", parts, [result], axis=axis))

    def _direction(self, place: int, back: bool, taken: Array, kept: Array, bias: Array) -> tuple[str, str, str]:
        """All states in the order of time, steps x 1 x batch x width; the last state; the last cell, where there is one."""
        own, recurrent = np.split(bias, 2)
        if not self._after_reset:
            own, recurrent = own + recurrent, np.zeros_like(recurrent)
        product = self._emit("Add", self._emit("MatMul", self._source, self._put(taken)), self._put(own))
        state, cell = (self._split(name, self._directions)[place] if name else self._zeros for name in self._initial)
        gated = 2 * self._width  # columns of a GRU's gates; the third product of one waits for them
        constants = [self._put(one) for one in (kept, kept[:, :gated], kept[:, gated:], recurrent)]
        parts, made = self._split(product, self._steps), []
        for part in parts[::-1] if back else parts:
            state, cell = self._next(part, state, cell, *constants)
            made.append(state)
        whole = self._emit("Concat", *(made[::-1] if back else made), axis=0)
        return self._emit("Unsqueeze", whole, self._one), state, cell

    def _split(self, name: str, count: int) -> list[str]:
        """A tensor's parts along its first axis, one after the other."""
        if count == 1:
            return [name]
        parts = [f"{self._name}__{len(self.nodes)}_{place}" for place in range(count)]
        self.nodes.append(helper.make_node("Split", [name, self._put([1] * count)], parts, axis=0))
        return parts

    def _lstm(self, part: str, state: str, cell: str, kept: str, *_: str) -> tuple[str, str]:
        gates = self._emit("Add", part, self._emit("MatMul", state, kept))
        taking, giving, keeping = (self._emit("Sigmoid", self._gate(gates, place)) for place in range(3))
        new = self._emit("Mul", taking, self._emit("Tanh", self._gate(gates, 3)))
        cell = self._emit("Add", self._emit("Mul", keeping, cell), new)
        return self._emit("Mul", giving, self._emit("Tanh", cell)), cell

    def _rnn(self, part: str, state: str, cell: str, kept: str, *_: str) -> tuple[str, str]:
        return self._emit(self._activation, self._emit("Add", part, self._emit("MatMul", state, kept))), cell

    def _gru(
        self, part: str, state: str, cell: str, kept: str, gated: str, last: str, recurrent: str
    ) -> tuple[str, str]:
        if self._after_reset:
            sums = self._emit("Add", self._emit("MatMul", state, kept), recurrent)
        else:
            sums = self._emit("MatMul", state, gated)
        update, reset = (
            self._emit("Sigmoid", self._emit("Add", self._gate(part, place), self._gate(sums, place)))
            for place in range(2)
        )
        if self._after_reset:
            hidden = self._emit("Mul", reset, self._gate(sums, 2))
        else:
            hidden = self._emit("MatMul", self._emit("Mul", reset, state), last)
        new = self._emit("Tanh", self._emit("Add", self._gate(part, 2), hidden))
        kept_part = self._emit("Mul", update, self._emit("Sub", state, new))
        return self._emit("Add", new, kept_part), cell

    def _gate(self, gates: str, place: int) -> str:
        return self._emit("Slice", gates, self._ends[place], self._ends[place + 1], self._last_axis)

    def _put(self, values: Any) -> str:
        return self._weights.put(f"{self._name}__constant", np.asarray(values))

    def _emit(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{self._name}__{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output
