"""The order for one baseline and its answers, each one line of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = Iterator[tuple[int, dict[str, Any]]]
"""What a process says, and the status that it ends with if that is the last of it."""
WARM_UP = 0.2
"""Seconds before anything is timed, as long as the archive's run.py takes: threads part, clocks rise, caches fill."""
AGAIN = 0.05
"""Seconds of warm runs when another library was timed in between, as the archive's run.py takes."""


@dataclass(frozen=True)
class Order:
    """`shapes` by input name for dynamic inputs, `scale` of those that are floats, none of them below zero where `positive`.

    `runs` are timed after `warm_up` seconds, with the inputs of the first seed, fewer when they take over `longest` seconds,
    and again for every further line; with 0 runs one reference is stored per seed instead.
    """

    network: str
    outputs_dir: str
    shapes: dict[str, list[int]] = field(default_factory=dict)
    scale: float = 1.0
    seeds: tuple[int, ...] = (0, 1, 2)
    threads: int = 1
    runs: int = 50
    warm_up: float = WARM_UP
    longest: float = 60.0
    positive: bool = False

    @classmethod
    def from_json(cls, text: str) -> Order:
        """Raises ValueError for anything that is not an order, TypeError for unknown or missing fields."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("the order is not a JSON object")
        order = cls(**{**fields, "seeds": tuple(fields.get("seeds", cls.seeds))})
        if not order.seeds or order.threads < 1 or order.runs < 0:
            raise ValueError("the order needs at least one seed and one thread, and no negative runs")
        return order

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Latency:
    """Seconds of one run: median and quartiles."""

    median: float
    lower_quartile: float
    upper_quartile: float
    runs: int

    @classmethod
    def of(cls, seconds: NDArray[np.float64]) -> Latency:
        """From at least one timed run."""
        lower, median, upper = (float(q) for q in np.quantile(seconds, (0.25, 0.5, 0.75)))
        return cls(median, lower, upper, len(seconds))


def answer(
    name: str,
    order: Order,
    seconds: NDArray[np.float64],
    version: str,
    references: Mapping[int, str] = MappingProxyType({}),
    others: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """What a baseline reports: seconds of every run, latency (null without runs), the reference file of every seed, and
    those of `others` that are as good."""
    return {
        "baseline": name,
        "version": version,
        "threads": order.threads,
        "seconds": [float(s) for s in seconds],
        "latency": asdict(Latency.of(seconds)) if len(seconds) else None,
        "references": {str(seed): path for seed, path in references.items()},
        "others": {str(seed): list(paths) for seed, paths in others.items()},
    }


def warm_ups(first: float, asked: Iterable[object]) -> Iterator[float]:
    """Seconds of warm runs before a library is timed, and before it is timed again, whenever that is `asked`."""
    yield first
    for _ in asked:
        yield AGAIN


def tell(answers: Answers) -> int:
    """Writes each as a line; the last one's status. Libraries write to standard output as they like: the answers keep the real
    one for themselves."""
    with os.fdopen(os.dup(1), "w", buffering=1) as channel:
        os.dup2(2, 1)
        status = 0
        for ended, answer in answers:
            channel.write(json.dumps(answer, sort_keys=True) + "\n")
            status = ended
    return status
