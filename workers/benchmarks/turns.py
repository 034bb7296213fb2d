"""Libraries timed in turns: a block of runs each, so that a change of the machine's speed hits all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from workers.baselines.order import Latency
from workers.child.peers import LEAST, LONGEST, TURNS, ArtifactFailed, Peer, library, onnxruntime, undisturbed
from workers.messages.baselines import ONNX_RUNTIME
from workers.messages.spec import RunSpec

OURS = "TVM"
FINALS = 30.0
"""Seconds that they take, as a guess."""


@dataclass(frozen=True)
class Turns:
    """Seconds of every run by library, a list a block; `errors` says why a library is missing, `firsts` are first answers."""

    blocks: dict[str, list[list[float]]]
    errors: dict[str, str]
    firsts: dict[str, dict[str, Any]]

    def notes(self, *names: str) -> dict[str, Any]:
        """What the last of these libraries that answered said beside its seconds."""
        said = {k: v for name in names for k, v in self.firsts.get(name, {}).items()}
        return {k: v for k, v in said.items() if k != "seconds"}

    def latency(self, name: str) -> Latency | None:
        """Over all blocks."""
        seconds = [second for block in self.blocks.get(name, ()) for second in block]
        return Latency.of(np.asarray(seconds)) if seconds and name not in self.errors else None

    def quickest(self, name: str) -> float | None:
        """Seconds in the quickest quarter of the blocks, as runs tell theirs: what disturbs a machine only ever adds."""
        return undisturbed(self.blocks[name]).median if self.latency(name) else None

    def ratios(self, name: str, other: str) -> list[float]:
        """Median of `name` over that of `other`, turn by turn."""
        pairs = zip(self.blocks.get(name, ()), self.blocks.get(other, ()), strict=False)
        return [float(np.median(ours) / np.median(theirs)) for ours, theirs in pairs]

    def to_json(self) -> dict[str, Any]:
        """Latencies by library, and the turns' ratios to ONNX Runtime."""
        found = {name: self.latency(name) for name in self.blocks}
        return {
            "latencies": {name: asdict(latency) for name, latency in found.items() if latency},
            "ratios": {name: self.ratios(name, ONNX_RUNTIME) for name in self.blocks if name != ONNX_RUNTIME},
            "errors": dict(self.errors),
        }


def turns() -> Iterator[int]:
    """Numbers of turns, until LONGEST seconds are over."""
    end = time.monotonic() + LONGEST
    for turn in range(TURNS):
        if turn >= LEAST and time.monotonic() > end:
            return
        yield turn


def in_turns(libraries: Mapping[str, Callable[[], Peer]], tick: Callable[[str], None]) -> Turns:
    """Starts all of them, and times them turn by turn; one that fails is left out from then on."""
    blocks: dict[str, list[list[float]]] = {name: [] for name in libraries}
    errors: dict[str, str] = {}
    with ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for name, start in libraries.items():
            tick(f"starting {name}")
            try:
                peers[name] = stack.enter_context(start())
            except ArtifactFailed as failure:
                errors[name] = str(failure)[-400:]
        for turn in turns():
            for name in [name for name in peers if name not in errors]:
                tick(f"turn {turn + 1} of {TURNS}: {name}")
                try:
                    blocks[name].append(peers[name].seconds(turn))
                except ArtifactFailed as failure:
                    errors[name] = str(failure)[-400:]
    return Turns(blocks, errors, {name: peer.answer for name, peer in peers.items()})


def pair(spec: RunSpec, folder: Path, work: Path) -> dict[str, Callable[[], Peer]]:
    """The library in `folder`, run by its own script, and ONNX Runtime on the same network."""
    return {OURS: partial(library, spec, folder), ONNX_RUNTIME: partial(onnxruntime, spec, work)}
