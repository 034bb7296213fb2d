"""Normalisations as ONNX Runtime's optimiser writes them, in the one form that TVM's converter knows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from onnx import ModelProto, NodeProto, helper

from workers.networks.errors import NetworkError
from workers.networks.graph import Weights, operator_types, rewrite, told, uses

SKIPPING = "SkipLayerNormalization"
GAMMA, BETA, BIAS = 2, 3, 4
"""Places of inputs; the last two may be left out."""
SUM = 3
"""Place of the output that has what was added up; before it are a mean and a deviation for training."""


def whole_skip_normalizations(model: ModelProto) -> str | None:
    """All have a beta and a bias, zeros where they had none, and what they add up, where it is read, is a sum of its own."""
    if SKIPPING not in operator_types(model):
        return None
    weights, read = Weights(model.graph), uses(model)

    def written_whole(node: NodeProto) -> list[NodeProto]:
        fits = node.op_type != SKIPPING or (len(node.output) == 1 and len(node.input) > BIAS and all(node.input))
        return [] if fits or node.input[GAMMA] not in weights else _whole(node, weights, read)

    written = rewrite(model.graph, written_whole)
    return told(
        written,
        "normalisation was written with all its inputs",
        "normalisations were written with all their inputs",
    )


def _whole(node: NodeProto, weights: Weights, read: Counter[str]) -> list[NodeProto]:
    given = [*node.input, "", ""][: BIAS + 1]
    result, *more = node.output
    for name in more[: SUM - 1]:
        if name and name in read:
            reason = "a mean or a deviation of it is read, which is for training"
            raise NetworkError(f"{SKIPPING} {node.name or result}", reason, "export the network for inference")
    sums: list[NodeProto] = []
    if len(more) >= SUM and more[SUM - 1] and more[SUM - 1] in read:
        added = more[SUM - 1]
        part = f"{added}__unbiased" if given[BIAS] else added
        sums = [helper.make_node("Add", given[:GAMMA], [part])]
        if given[BIAS]:
            sums.append(helper.make_node("Add", [part, given[BIAS]], [added]))
    for place, word in ((BETA, "beta"), (BIAS, "bias")):
        if not given[place]:
            given[place] = weights.put(f"{result}__{word}", np.zeros_like(weights.get(given[GAMMA])))
    del node.input[:], node.output[1:]
    node.input.extend(given)
    return [node, *sums]
