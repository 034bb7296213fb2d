"""Boosted trees asked of configurations in place of features: an annealing asks a hundred times, for a hundred and more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workers.engine.space import Choices, Features

if TYPE_CHECKING:
    import xgboost as xgb

DEPTH = 3
"""Of the deepest trees: their questions are the bits of a byte."""
NODES = 2**DEPTH - 1
CODES = 2**NODES


class TabledTrees:
    """The sum of a booster's trees, none deeper than DEPTH, for choices (n, knobs) that are rows of `tables`, a knob's
    features (options, columns) each; `fixed` (d,) are the features behind them that all configurations share.

    A question of a tree is about one feature, and so about one knob. What an option answers to the questions of a tree is a
    byte, a bit a question; the bytes of a configuration's options add up to its code, which names the leaf. A call is a look-up
    a knob, one for the leaves and a sum: for the 128 configurations of an annealing's step a quarter of what the library takes
    for fifty trees, and half for a hundred.
    """

    def __init__(self, booster: xgb.Booster, tables: Sequence[Features], fixed: Features) -> None:
        told = json.loads(booster.save_raw("json"))["learner"]
        trees = told["gradient_booster"]["model"]["trees"]
        features = np.full((len(trees), NODES), -1)  # no question
        limits = np.zeros((len(trees), NODES), dtype=np.float32)
        leaves = np.zeros((len(trees), NODES + 1))
        for place, tree in enumerate(trees):
            _lay(tree, features[place], limits[place], leaves[place])
        *begins, end = np.cumsum([0, *(table.shape[1] for table in tables)])
        self._answers = [_answers(table, features - begin, limits) for table, begin in zip(tables, begins, strict=True)]
        self._shared = _answers(fixed[None, :], features - end, limits)[0]
        self._leaves = leaves[:, _ends()].ravel()
        self._first = CODES * np.arange(len(trees), dtype=np.intp)
        self._base = 0.0
        rows = np.concatenate([*(table[0] for table in tables), fixed])[None, :].astype(np.float32)
        # The library's own word for what the trees are added to.
        first = self(np.zeros((1, len(tables)), dtype=np.int32))
        self._base = float((booster.inplace_predict(rows, validate_features=False) - first)[0])

    def __call__(self, choices: Choices) -> NDArray[np.float64]:
        """(n,)"""
        codes = np.tile(self._shared, (len(choices), 1))
        for answers, chosen in zip(self._answers, choices.T, strict=True):
            codes += answers[chosen]
        found: NDArray[np.float64] = self._leaves.take(codes + self._first).sum(axis=1) + self._base
        return found


def _lay(
    tree: dict[str, list[Any]], features: NDArray[np.intp], limits: NDArray[np.float32], leaves: NDArray[np.float64]
) -> None:
    """Lays a tree out as a heap, into rows for its questions and its leaves; a leaf that comes early holds all places beneath
    it."""
    left, right = tree["left_children"], tree["right_children"]
    pending = [(0, 0, 0)]
    while pending:
        node, place, depth = pending.pop()
        if left[node] < 0:
            span = 2 ** (DEPTH - depth)
            begin = (place + 1) * span - 2**DEPTH
            leaves[begin : begin + span] = tree["split_conditions"][node]
            continue
        features[place], limits[place] = tree["split_indices"][node], tree["split_conditions"][node]
        pending += [(left[node], 2 * place + 1, depth + 1), (right[node], 2 * place + 2, depth + 1)]


def _answers(table: Features, features: NDArray[np.intp], limits: NDArray[np.float32]) -> NDArray[np.uint8]:
    """(options, trees): a bit for each question of a tree that is about this table and that an option answers with "not under
    the limit", which is the way to the right."""
    answers = np.zeros((len(table), len(features)), dtype=np.uint8)
    for place in range(NODES):
        (about,) = np.nonzero((features[:, place] >= 0) & (features[:, place] < table.shape[1]))
        asked = table[:, features[about, place]]
        answers[:, about] |= (asked >= limits[about, place]).astype(np.uint8) << np.uint8(place)
    return answers


def _ends() -> NDArray[np.intp]:
    """(CODES,): the leaf, from the left, that each code comes to."""
    codes, places = np.arange(CODES), np.zeros(CODES, dtype=np.intp)
    for _ in range(DEPTH):
        places = 2 * places + 1 + ((codes >> places) & 1)
    ends: NDArray[np.intp] = places - NODES
    return ends
