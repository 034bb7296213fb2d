"""LSTM, GRU and RNN written out step by step: TVM has no recurrent operators, and sizes here are fixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.graph import Weights, attribute, rewrite, told
from workers.networks.opsets import OLDEST
from workers.networks.shape import sizes_of
from workers.networks.shapes import tensor_shapes
from workers.networks.structure import opset

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
        sizes = sizes_of(shapes, node.input[0]) if node.op_type in ACTIVATIONS else ()
        if len(sizes) != 3 or not any(node.output) or not _plain(node, sizes[0], weights):
            return []
        return _Steps(node, weights, sizes).nodes

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
    if len(weights.shape(taken)) != 3 or len(weights.shape(kept)) != 3:
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

    The products with all inputs are one matrix product in front. States are directions x batch x width all along: step by step
    both directions go on side by side, one from the end. Constants are shared, so that all steps are the same operators to the
    compiler.
    """

    def __init__(self, node: NodeProto, weights: Weights, shape: Sequence[int]) -> None:
        self.nodes: list[NodeProto] = []
        self._weights = weights
        self._name = next(name for name in node.output if name)
        source, taken, kept, bias, _, *initial, _ = _inputs(node)
        self._activation = attribute(node, "activations", [b"Tanh"])[0].decode().capitalize()  # of an RNN
        self._after_reset = bool(attribute(node, "linear_before_reset", 0))
        following: dict[str, Callable[..., tuple[str, str]]] = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}
        matrices, recurrent = (weights.get(name).transpose(0, 2, 1) for name in (taken, kept))
        self._directions, self._width, columns = recurrent.shape
        self._steps, self._batch = shape[:2]
        self._backwards = attribute(node, "direction", b"forward") == b"reverse"
        biases = weights.get(bias) if bias else np.zeros((self._directions, 2 * columns), recurrent.dtype)
        own, after = np.split(biases, 2, axis=1)
        if not self._after_reset:
            own, after = own + after, np.zeros_like(after)
        zeros = self._put(np.zeros((self._directions, self._batch, self._width), recurrent.dtype))
        self._ends = [self._put([gate * self._width]) for gate in range(_GATES[node.op_type] + 1)]
        self._last_axis = self._put([2])
        product = self._emit("MatMul", source, self._put(np.concatenate([*matrices], axis=1)))
        parts = self._parts(self._emit("Add", product, self._put(own.reshape(-1))), columns)
        gated = 2 * self._width  # columns of a GRU's gates; the third product of one waits for them
        kinds = (recurrent, recurrent[..., :gated], recurrent[..., gated:], after[:, np.newaxis])
        constants = [self._put(one if self._directions > 1 else one[0]) for one in kinds]
        state, cell = (name or zeros for name in initial)
        made = list[str]()
        for part in parts:
            state, cell = following[node.op_type](part, state, cell, *constants)
            made.append(state)
        whole = self._whole(made) if node.output[0] else ""
        for result, values in zip(node.output, (whole, state, cell), strict=False):
            if result:
                self.nodes.append(helper.make_node("Identity", [values], [result]))

    def _parts(self, product: str, columns: int) -> list[str]:
        """Of steps x batch x the directions' `columns`, what each step reads, directions x batch x columns, in its order."""
        if self._directions > 1:
            apart = self._reshaped(product, self._steps, self._batch, self._directions, columns)
            sides = self._emit("Transpose", apart, perm=[0, 2, 1, 3])
            product = self._turned(self._reshaped(sides, self._steps * self._directions, self._batch, columns))
        if self._steps == 1:
            return [product]
        parts = [f"{self._name}__{len(self.nodes)}_{place}" for place in range(self._steps)]
        sizes = self._put([self._directions] * self._steps)
        self.nodes.append(helper.make_node("Split", [product, sizes], parts, axis=0))
        return parts[::-1] if self._backwards else parts

    def _whole(self, states: Sequence[str]) -> str:
        """Those of all steps in the order of time, steps x directions x batch x width."""
        whole = self._emit("Concat", *(states[::-1] if self._backwards else states), axis=0)
        ordered = self._turned(whole) if self._directions > 1 else whole
        return self._reshaped(ordered, self._steps, self._directions, self._batch, self._width)

    def _turned(self, name: str) -> str:
        """Of the two directions in turns, one step by step, the second from the other end: what is first comes last."""
        forward, backward = np.arange(0, 2 * self._steps, 2), np.arange(2 * self._steps - 1, 0, -2)
        return self._emit("Gather", name, self._put(np.stack([forward, backward], axis=1).reshape(-1)), axis=0)

    def _reshaped(self, name: str, *sizes: int) -> str:
        return self._emit("Reshape", name, self._put([*sizes]))

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
